"""A program without network and files, as far as the kernel allows: ``python -I -S FOLDER OPTIONS``.

It imports the standard library only, and runs on its own: a process of one thread can enter a user
namespace, and no other. A waiting process of `playhead_replay.runner.warm_processes` loads it from its
folder, too.
"""

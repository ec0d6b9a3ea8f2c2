"""What everything here rests on: lanes, patching, forks, the real clock. It knows no driver."""

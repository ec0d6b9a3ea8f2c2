"""moto in the place of a cloud, under botocore."""

import os
import sys

import boto3
from moto import mock_aws

os.environ |= {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_DEFAULT_REGION": "eu-west-1"}
with mock_aws():
    sqs = boto3.client("sqs")
    queue = sqs.create_queue(QueueName="one")["QueueUrl"]
    sqs.send_message(QueueUrl=queue, MessageBody="hello")
    print([one["Body"] for one in sqs.receive_message(QueueUrl=queue)["Messages"]])
sys.exit(3)

"""Amazon Bedrock: Converse, text models, embeddings."""

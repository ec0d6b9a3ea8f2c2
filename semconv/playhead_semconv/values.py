"""Known values. Generated from the registry by `make generate`; do not edit."""


class GenAiOperationName:
    """Known values of gen_ai.operation.name: The operation."""

    CHAT = "chat"
    """Chat completion, the Responses API and Anthropic's messages too."""
    GENERATE_CONTENT = "generate_content"
    """Multimodal generation, as in Gemini."""
    TEXT_COMPLETION = "text_completion"
    """Legacy text completion."""
    EMBEDDINGS = "embeddings"
    """Embeddings."""
    RETRIEVAL = "retrieval"
    """Search in a data source."""
    FETCH_RESPONSE = "fetch_response"
    """An earlier response is fetched; reports no usage."""
    EXECUTE_TOOL = "execute_tool"
    """A tool is executed."""
    CREATE_AGENT = "create_agent"
    """An agent is created."""
    INVOKE_AGENT = "invoke_agent"
    """An agent is invoked."""
    INVOKE_WORKFLOW = "invoke_workflow"
    """A workflow is invoked."""
    PLAN = "plan"
    """A plan is made."""
    CREATE_MEMORY_STORE = "create_memory_store"
    """A memory store is created."""
    DELETE_MEMORY_STORE = "delete_memory_store"
    """A memory store is deleted."""
    CREATE_MEMORY = "create_memory"
    """Memory records are created."""
    UPDATE_MEMORY = "update_memory"
    """Memory records are updated."""
    UPSERT_MEMORY = "upsert_memory"
    """Memory records are created or updated."""
    SEARCH_MEMORY = "search_memory"
    """Memory records are searched."""
    DELETE_MEMORY = "delete_memory"
    """Memory records are deleted."""


class GenAiProviderName:
    """Known values of gen_ai.provider.name: The provider as the client sees it."""

    OPENAI = "openai"
    """OpenAI."""
    ANTHROPIC = "anthropic"
    """Anthropic."""
    GCP_GEMINI = "gcp.gemini"
    """Gemini (generativelanguage.googleapis.com)."""
    GCP_VERTEX_AI = "gcp.vertex_ai"
    """Vertex AI (aiplatform.googleapis.com)."""
    GCP_GEN_AI = "gcp.gen_ai"
    """Google, which of its endpoints is not known."""
    AWS_BEDROCK = "aws.bedrock"
    """AWS Bedrock."""
    AZURE_AI_OPENAI = "azure.ai.openai"
    """Azure OpenAI."""
    AZURE_AI_INFERENCE = "azure.ai.inference"
    """Azure AI Inference."""
    COHERE = "cohere"
    """Cohere."""
    DEEPSEEK = "deepseek"
    """DeepSeek."""
    GROQ = "groq"
    """Groq."""
    IBM_WATSONX_AI = "ibm.watsonx.ai"
    """IBM watsonx."""
    MISTRAL_AI = "mistral_ai"
    """Mistral AI."""
    MOONSHOT_AI = "moonshot_ai"
    """Moonshot AI."""
    PERPLEXITY = "perplexity"
    """Perplexity."""
    X_AI = "x_ai"
    """xAI."""


class GenAiOutputType:
    """Known values of gen_ai.output.type: Kind of output that the request asks for."""

    TEXT = "text"
    """Plain text."""
    JSON = "json"
    """JSON, with or without a schema."""
    IMAGE = "image"
    """Image."""
    SPEECH = "speech"
    """Speech."""


class GenAiTokenType:
    """Known values of gen_ai.token.type: Which tokens a metric counts."""

    INPUT = "input"
    """Tokens of the request."""
    OUTPUT = "output"
    """Tokens of the answer."""


class GenAiToolType:
    """Known values of gen_ai.tool.type: Kind of the tool."""

    FUNCTION = "function"
    """Executed by the program."""
    EXTENSION = "extension"
    """Executed by the provider."""
    DATASTORE = "datastore"
    """Reads data for the model."""


class OpenaiApiType:
    """Known values of openai.api.type: Which of the APIs was called."""

    CHAT_COMPLETIONS = "chat_completions"
    """Chat completions."""
    RESPONSES = "responses"
    """Responses."""


class PlayheadPhaseType:
    """Known values of playhead.phase.type: Type of a change of phases."""

    NORMAL = "normal"
    """The next phase of the plan."""
    ERROR = "error"
    """After an error."""
    RETRY = "retry"
    """The same work is done again."""
    SKIP = "skip"
    """A planned phase is left out."""
    JUMP = "jump"
    """Any other order."""

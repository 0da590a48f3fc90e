import { schema } from '@svc/core'

/** The section `mcp.server`. Names as in the configuration file. */
export interface McpServerConfig {
  enabled: boolean
  /** For `svc mcp serve`, whose port is its own; elsewhere the tools are served where the API is. */
  host: string
  port: number
  /** Names and patterns (`github__*`); absent: all tools. */
  tools?: string[]
  /** Names and patterns by set; each is served at `/mcp/<name>`. */
  sets: Record<string, string[]>
  auth: { required: boolean; api_key_env: string }
  sessions: { max_per_principal: number; max: number; idle_timeout_ms: number }
}

const atLeastOne = (value: number, description: string) => ({ type: 'integer', minimum: 1, default: value, description })

const patterns = {
  type: 'array',
  items: {
    type: 'string',
    pattern: '^\\S{1,256}$',
    patternHint: 'must be the name of a tool, or a pattern like github__*',
  },
}

export const mcpServerConfig = schema<McpServerConfig>({
  type: 'object',
  additionalProperties: false,
  properties: {
    enabled: {
      type: 'boolean',
      default: false,
      description: 'Whether tools are published over the tool protocol (MCP): /mcp and /tools.',
    },
    host: { type: 'string', minLength: 1, default: '127.0.0.1', description: 'Address that `svc mcp serve` listens on.' },
    port: {
      type: 'integer',
      minimum: 0,
      maximum: 65535,
      default: 8081,
      description: 'Port that `svc mcp serve` listens on; 0 takes a free one.',
    },
    tools: { ...patterns, description: 'Tools that are published, by name or pattern (github__*). Default: all.' },
    sets: {
      type: 'object',
      default: {},
      propertyNames: { pattern: '^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$' },
      additionalProperties: patterns,
      description: 'Sets of tools by name, each served at /mcp/<name>: names and patterns.',
    },
    auth: {
      type: 'object',
      default: {},
      additionalProperties: false,
      properties: {
        required: {
          type: 'boolean',
          default: false,
          description: 'Whether the paths of the tool server ask for a key although server.auth.enabled is false.',
        },
        api_key_env: {
          type: 'string',
          minLength: 1,
          default: 'SVC_MCP_API_KEY',
          description: 'Name of the environment variable that holds the key.',
        },
      },
    },
    sessions: {
      type: 'object',
      default: {},
      additionalProperties: false,
      properties: {
        max_per_principal: atLeastOne(
          64,
          'Sessions that one principal has with a worker (without a name: one address); the one idle for longest gives way.'
        ),
        max: atLeastOne(1_000, 'Sessions that all have with a worker.'),
        idle_timeout_ms: atLeastOne(
          1_800_000,
          'Milliseconds without a request, and without an open stream, after which a session ends.'
        ),
      },
    },
  },
})

import { schema } from '@svc/core'

/** The section `mcp.server`, with the names of the configuration file. */
export interface McpServerConfig {
  enabled: boolean
  /** Address for `svc mcp serve`. Beside the API, `server.host` and `server.port` apply. */
  host: string
  port: number
  /** Names and patterns (`github__*`). Default: all tools. */
  tools?: string[]
  /** Names and patterns by set. Each set is served at `/mcp/<name>`. */
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
      description: 'Publish tools over the Model Context Protocol (MCP) at /mcp and over HTTP at /tools.',
    },
    host: { type: 'string', minLength: 1, default: '127.0.0.1', description: 'Address that `svc mcp serve` listens on.' },
    port: {
      type: 'integer',
      minimum: 0,
      maximum: 65535,
      default: 8081,
      description: 'Port that `svc mcp serve` listens on. 0 selects a free port.',
    },
    tools: { ...patterns, description: 'Names or patterns (github__*) of the published tools. Default: all tools.' },
    sets: {
      type: 'object',
      default: {},
      propertyNames: { pattern: '^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$' },
      additionalProperties: patterns,
      description: 'Sets of tools. Each set has names and patterns, and is served at /mcp/<name>.',
    },
    auth: {
      type: 'object',
      default: {},
      additionalProperties: false,
      properties: {
        required: {
          type: 'boolean',
          default: false,
          description: 'Require the key on the paths of the MCP server even if server.auth.enabled is false.',
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
          'Maximum sessions per worker of one principal, or of one address without authentication. A new session replaces the one that was idle for longest.'
        ),
        max: atLeastOne(1_000, 'Maximum sessions per worker.'),
        idle_timeout_ms: atLeastOne(
          1_800_000,
          'Milliseconds without a request and without an open stream after which a session ends.'
        ),
      },
    },
  },
})

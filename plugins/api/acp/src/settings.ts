import { schema } from '@svc/core'

/** The section `acp`. The flags of `svc acp` set the first three keys. */
export interface AcpConfig {
  profile?: string
  mode?: string
  model?: string
  turn_timeout_ms: number
  editor_tools: boolean
  mcp_servers: boolean
}

const text = (description: string) => ({ type: 'string', minLength: 1, description })

export const ACP_CONFIG = schema<AcpConfig>({
  type: 'object',
  additionalProperties: false,
  properties: {
    profile: text('Profile that answers the editor; default: the active profile'),
    mode: text('Mode of new sessions; default: the mode of the profile'),
    model: text('Model that answers the editor, as <model>, an alias or <provider>/<model>; default: the model of the profile'),
    turn_timeout_ms: {
      type: 'integer',
      minimum: 1,
      default: 3_600_000,
      description: 'Time limit of a turn in milliseconds, including the time that it waits for permissions',
    },
    editor_tools: {
      type: 'boolean',
      default: true,
      description: 'Offer the files and terminals of the editor to the model as tools',
    },
    mcp_servers: {
      type: 'boolean',
      default: true,
      description: 'Connect to the local MCP servers that the editor names, with the rights of svc',
    },
  },
})

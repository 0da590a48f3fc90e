import { basename } from 'node:path'
import { type JsonSchema, schema } from '@svc/core'
import type { Effect } from '@svc/core/contracts'

/** `mcp.clients[].sandbox_config` */
export interface SandboxSettings {
  /** Maximum seconds of a call. */
  readonly timeout?: number
  /** `512M`, in binary units. */
  readonly memory_limit?: string
  readonly network_access?: boolean
  readonly filesystem_readonly?: boolean
  readonly allowed_paths?: readonly string[]
}

interface OAuthSettings {
  readonly client_id?: string
  readonly client_secret?: string
  readonly client_secret_env?: string
  readonly token_url?: string
  readonly issuer?: string
  readonly scope?: string
}

/** One MCP server in `mcp.clients` or `<svc home>/mcp.yaml`. Times are seconds. */
export interface McpClientConfig {
  readonly name: string
  readonly url?: string
  readonly command?: string
  readonly args?: readonly string[]
  readonly env?: { readonly [name: string]: string }
  readonly tools?: readonly string[]
  readonly timeout?: number
  readonly retry_attempts?: number
  readonly idle_timeout?: number
  readonly api_key_env?: string
  readonly api_key_header?: 'authorization' | 'x-api-key'
  readonly oauth?: OAuthSettings
  readonly sandbox?: boolean
  readonly sandbox_config?: SandboxSettings
  readonly allow?: readonly string[]
  readonly deny?: readonly string[]
  readonly effects?: readonly Effect[]
  readonly enabled?: boolean
}

const closed = (properties: Record<string, JsonSchema>, required: string[] = []): JsonSchema => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
})
const text = (description: string, more: object = {}): JsonSchema => ({ type: 'string', minLength: 1, description, ...more })
const texts = (description: string): JsonSchema => ({ type: 'array', items: { type: 'string', minLength: 1 }, description })
const flag = (description: string): JsonSchema => ({ type: 'boolean', description })
const seconds = (description: string): JsonSchema => ({ type: 'number', exclusiveMinimum: 0, maximum: 86_400, description })

const oauth = closed({
  client_id: text('Client id of svc at the authorization server.'),
  client_secret: text('Client secret; prefer client_secret_env.'),
  client_secret_env: text('Environment variable that holds the client secret.'),
  token_url: text('Token endpoint for client credentials; default: the discovery of the protocol.'),
  issuer: text(
    'The only authorization server for logins, exactly as it names itself; may have a private address. Default: the one that the server names, at a public address or at the server itself.'
  ),
  scope: text('Scopes to request, separated by spaces.'),
})

const sandbox = closed({
  timeout: seconds('Maximum seconds of a call; default 30.'),
  memory_limit: { type: 'string', pattern: '^\\d+[KMG]?$', description: 'Memory, for example 512M; default 512M.' },
  network_access: flag('Allow network access; default false. For a remote server: allow addresses other than its own.'),
  filesystem_readonly: flag('Mount the visible folders read-only; default true.'),
  allowed_paths: texts('Files and folders that the server may write.'),
})

/** The name is part of the names of its tools, of labels and of keys. */
const NAME = '^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$'

const client = closed(
  {
    name: {
      type: 'string',
      pattern: NAME,
      patternHint: 'must be 1 to 32 letters, digits, _ and -',
      description: 'Name of the server; prefix of its tools.',
    },
    url: text('URL of a remote server (HTTP).'),
    command: text('Program of a local server (stdio).'),
    args: { type: 'array', items: { type: 'string' }, description: 'Arguments of the command.' },
    env: {
      type: 'object',
      additionalProperties: { type: 'string' },
      description:
        'Variables of the command; ${NAME} inserts a variable of svc. The command inherits only PATH, HOME and the like.',
    },
    tools: texts('Names of the tools to use; default: all.'),
    timeout: seconds('Maximum seconds of a call; default 30.'),
    idle_timeout: {
      type: 'number',
      minimum: 0,
      maximum: 31_536_000,
      description:
        'Seconds without a call after which a command is stopped until the next one; 0 keeps it running; default 3600.',
    },
    retry_attempts: {
      type: 'integer',
      minimum: 0,
      maximum: 1000,
      description: 'Further attempts after a failed connection; default 5.',
    },
    api_key_env: text('Environment variable that holds the API key.'),
    api_key_header: {
      enum: ['authorization', 'x-api-key'],
      description: 'Header of the API key; default authorization (Bearer).',
    },
    oauth,
    sandbox: flag('Run the command in the process sandbox; default false.'),
    sandbox_config: sandbox,
    allow: texts('Patterns of the tools to use, for example read_*; default: all.'),
    deny: texts('Patterns of the tools not to use; overrides allow.'),
    effects: {
      type: 'array',
      items: { enum: ['read', 'write', 'execute', 'network'] },
      description: 'Effects of its tools; default execute and network.',
    },
    enabled: flag('Set to false to disable the server.'),
  },
  ['name']
)

/** `mcp.clients`: the servers, in order. */
export const MCP_CLIENTS = schema<readonly McpClientConfig[]>({
  type: 'array',
  items: client,
  default: [],
  description: 'MCP servers whose tools svc uses; svc mcp add writes the same entries to mcp.yaml.',
})

/** The section `mcp`, as far as it belongs to this plugin. */
export interface McpConfig {
  readonly clients: readonly McpClientConfig[]
  readonly recheck_s: number
}

export const MCP_CONFIG = schema<McpConfig>(
  closed({
    clients: MCP_CLIENTS.json,
    recheck_s: {
      type: 'number',
      minimum: 0,
      maximum: 86_400,
      default: 300,
      description: 'Seconds after which svc lists the tools of a remote MCP server again, to notice changes; 0 never does.',
    },
  })
)

/** `<svc home>/mcp.yaml` */
export const MCP_FILE = schema<{ readonly clients: readonly McpClientConfig[] }>(
  closed({ clients: { type: 'array', items: client, default: [] } })
)

/** A problem that the schema does not find: the keys of its place, and how to fix it. */
export interface EntryProblem {
  readonly keys: readonly string[]
  readonly message: string
  readonly hint: string
}

/** Programs that download other programs and run them. */
const FETCHERS: readonly string[] = ['npx', 'bunx', 'pnpx', 'uvx', 'pipx']

type Rule = (entry: McpClientConfig) => EntryProblem | undefined
const problem = (keys: readonly string[], message: string, hint: string): EntryProblem => ({ keys, message, hint })

/** All problems of an entry that is valid by the schema. */
export const entryProblems = (entry: McpClientConfig): EntryProblem[] =>
  RULES.map(rule => rule(entry)).filter(one => one !== undefined)

const RULES: readonly Rule[] = [
  ({ url, command }) =>
    (url === undefined) === (command === undefined)
      ? problem(
          [],
          'must have either url or command',
          'Set url to https://… for a remote server, or command and args for a local program'
        )
      : undefined,
  ({ url }) => (url === undefined ? undefined : urlProblem(url)),
  entry => misplaced(entry, entry.url !== undefined, ['args', 'env', 'idle_timeout'], 'a command', 'url'),
  entry => misplaced(entry, entry.command !== undefined, ['api_key_env', 'api_key_header', 'oauth'], 'a url', 'command'),
  ({ api_key_env, oauth }) =>
    api_key_env !== undefined && oauth !== undefined
      ? problem(['oauth'], 'cannot be combined with api_key_env', 'Remove one of the two')
      : undefined,
  ({ api_key_env, api_key_header }) =>
    api_key_header !== undefined && api_key_env === undefined
      ? problem(['api_key_header'], 'requires api_key_env', 'Set api_key_env to the name of the variable that holds the key')
      : undefined,
  ({ oauth }) =>
    oauth?.client_secret !== undefined && oauth.client_secret_env !== undefined
      ? problem(['oauth', 'client_secret_env'], 'cannot be combined with client_secret', 'Remove one of the two')
      : undefined,
  ({ oauth }) =>
    oauth?.token_url !== undefined && oauth.client_id === undefined
      ? problem(['oauth', 'token_url'], 'requires client_id and its secret', 'Set oauth.client_id and oauth.client_secret_env')
      : undefined,
  ({ oauth }) => (oauth?.token_url === undefined ? undefined : urlProblem(oauth.token_url, ['oauth', 'token_url'])),
  ({ oauth }) => (oauth?.issuer === undefined ? undefined : urlProblem(oauth.issuer, ['oauth', 'issuer'])),
  ({ sandbox, sandbox_config }) =>
    sandbox_config !== undefined && sandbox === undefined
      ? problem(
          ['sandbox_config'],
          'has no effect without sandbox: true',
          'Set sandbox to true, or to false to keep the values for later'
        )
      : undefined,
  ({ command, sandbox, sandbox_config: limits }) =>
    sandbox && !limits?.network_access && command !== undefined && FETCHERS.includes(basename(command))
      ? problem(
          ['command'],
          `is ${basename(command)}, which downloads its program each time, but the sandbox has no network access`,
          'Install the server and set command to its program, or set sandbox_config.network_access to true (svc mcp add --network)'
        )
      : undefined,
  ({ url, sandbox, sandbox_config: limits }) =>
    url !== undefined && sandbox && (limits?.filesystem_readonly === false || (limits?.allowed_paths?.length ?? 0) > 0)
      ? problem(
          ['sandbox_config', limits?.filesystem_readonly === false ? 'filesystem_readonly' : 'allowed_paths'],
          'applies to local files, but this server is remote',
          'Remove it; only timeout and network_access apply to a remote server'
        )
      : undefined,
]

function misplaced(
  entry: McpClientConfig,
  applies: boolean,
  keys: readonly (keyof McpClientConfig)[],
  of: string,
  beside: string
) {
  const key = applies ? keys.find(one => entry[one] !== undefined) : undefined
  return key === undefined ? undefined : problem([key], `is only for ${of}, but this entry has a ${beside}`, `Remove ${key}`)
}

function urlProblem(text: string, keys: readonly string[] = ['url']): EntryProblem | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !['http:', 'https:'].includes(url.protocol))
    return problem(
      keys,
      'must be a URL that begins with http:// or https://',
      'Set the complete URL, for example https://host/mcp'
    )
  if (url.username !== '' || url.password !== '')
    return problem(
      keys,
      'must not contain a user name or a password',
      'Put the key into an environment variable, and set api_key_env to its name'
    )
  return undefined
}

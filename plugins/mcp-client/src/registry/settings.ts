import { basename } from 'node:path'
import { type JsonSchema, schema } from '@svc/core'
import type { Effect } from '@svc/core/contracts'

/** The process sandbox of a server, as `mcp.clients[].sandbox_config` has it. */
export interface SandboxSettings {
  /** Seconds that a call may take. */
  readonly timeout?: number
  /** `512M`: binary. */
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

/** One server of the tool protocol, as `mcp.clients` and `<svc home>/mcp.yaml` have it. Times are seconds. */
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
  client_id: text('The id by which the authorization server knows svc.'),
  client_secret: text('Its secret; better in a variable: client_secret_env.'),
  client_secret_env: text('Name of the environment variable that holds the secret.'),
  token_url: text('Where tokens are asked for with the client credentials; without it they are found as the protocol says.'),
  issuer: text(
    'The only authorization server at which somebody may log in, to the letter as it names itself; it may lie on a private address. Without it the one that the server names, on a public address or at the server itself.'
  ),
  scope: text('Scopes to ask for, with blanks between them.'),
})

const sandbox = closed({
  timeout: seconds('Seconds that a call may take; default 30.'),
  memory_limit: { type: 'string', pattern: '^\\d+[KMG]?$', description: 'Memory, as 512M; default 512M.' },
  network_access: flag(
    'Whether it may use the network; default false. Of a remote server: whether any other address than its own is reached.'
  ),
  filesystem_readonly: flag('Whether the folders that it sees can only be read; default true.'),
  allowed_paths: texts('Files and folders that it may write.'),
})

/** A name is part of the names of its tools, of labels and of keys. */
const NAME = '^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$'

const client = closed(
  {
    name: {
      type: 'string',
      pattern: NAME,
      patternHint: 'must be 1 to 32 letters, digits, _ and -',
      description: 'What it is called here.',
    },
    url: text('Its address, where it is reached over HTTP.'),
    command: text('The program that is started for it, where it is a program of this machine.'),
    args: { type: 'array', items: { type: 'string' }, description: 'Arguments of the command.' },
    env: {
      type: 'object',
      additionalProperties: { type: 'string' },
      description:
        'Variables of the command; ${NAME} stands for a variable of svc. No other than PATH, HOME and the like is handed on.',
    },
    tools: texts('The only tools of it that are used, by name; without it all.'),
    timeout: seconds('Seconds that a call may take; default 30.'),
    idle_timeout: {
      type: 'number',
      minimum: 0,
      maximum: 31_536_000,
      description: 'Seconds without a call after which a command is ended until it is needed; 0 keeps it; default 3600.',
    },
    retry_attempts: {
      type: 'integer',
      minimum: 0,
      maximum: 1000,
      description: 'Attempts to connect after one failed; default 5.',
    },
    api_key_env: text('Name of the environment variable that holds its key.'),
    api_key_header: {
      enum: ['authorization', 'x-api-key'],
      description: 'The header that carries the key; default authorization (Bearer).',
    },
    oauth,
    sandbox: flag('Runs the command in the process sandbox; default false.'),
    sandbox_config: sandbox,
    allow: texts('Tools that may be used, by pattern (read_*); without it all.'),
    deny: texts('Tools that may not, by pattern; weighs more than allow.'),
    effects: {
      type: 'array',
      items: { enum: ['read', 'write', 'execute', 'network'] },
      description: 'What its tools do; default execute and network.',
    },
    enabled: flag('false leaves it out.'),
  },
  ['name']
)

/** What `mcp.clients` may be: the servers, in order. */
export const MCP_CLIENTS = schema<readonly McpClientConfig[]>({
  type: 'array',
  items: client,
  default: [],
  description: 'Servers of the tool protocol (MCP) whose tools are used; svc mcp add writes the like into mcp.yaml.',
})

/** What `<svc home>/mcp.yaml` may say. */
export const MCP_FILE = schema<{ readonly clients: readonly McpClientConfig[] }>(
  closed({ clients: { type: 'array', items: client, default: [] } })
)

/** What no schema says of an entry: `keys` is where, `hint` what to do. */
export interface EntryProblem {
  readonly keys: readonly string[]
  readonly message: string
  readonly hint: string
}

/** Programs that fetch others and run them. */
const FETCHERS: readonly string[] = ['npx', 'bunx', 'pnpx', 'uvx', 'pipx']

type Rule = (entry: McpClientConfig) => EntryProblem | undefined
const fault = (keys: readonly string[], message: string, hint: string): EntryProblem => ({ keys, message, hint })

/** All that is wrong with one entry that fits the schema. */
export const entryProblems = (entry: McpClientConfig): EntryProblem[] =>
  RULES.map(rule => rule(entry)).filter(one => one !== undefined)

const RULES: readonly Rule[] = [
  ({ url, command }) =>
    (url === undefined) === (command === undefined)
      ? fault(
          [],
          'must have either url or command',
          'write url: https://… for a server that is reached over HTTP, command and args for a program'
        )
      : undefined,
  ({ url }) => (url === undefined ? undefined : urlProblem(url)),
  entry => misplaced(entry, entry.url !== undefined, ['args', 'env', 'idle_timeout'], 'a command', 'url'),
  entry => misplaced(entry, entry.command !== undefined, ['api_key_env', 'api_key_header', 'oauth'], 'a url', 'command'),
  ({ api_key_env, oauth }) =>
    api_key_env !== undefined && oauth !== undefined
      ? fault(['oauth'], 'stands beside api_key_env: a server is given one credential', 'keep one of the two')
      : undefined,
  ({ api_key_env, api_key_header }) =>
    api_key_header !== undefined && api_key_env === undefined
      ? fault(['api_key_header'], 'stands without api_key_env', 'name the variable that has the key: api_key_env')
      : undefined,
  ({ oauth }) =>
    oauth?.client_secret !== undefined && oauth.client_secret_env !== undefined
      ? fault(['oauth', 'client_secret_env'], 'stands beside client_secret', 'keep one of the two')
      : undefined,
  ({ oauth }) =>
    oauth?.token_url !== undefined && oauth.client_id === undefined
      ? fault(['oauth', 'token_url'], 'needs client_id and its secret', 'set oauth.client_id and oauth.client_secret_env')
      : undefined,
  ({ oauth }) => (oauth?.token_url === undefined ? undefined : urlProblem(oauth.token_url, ['oauth', 'token_url'])),
  ({ oauth }) => (oauth?.issuer === undefined ? undefined : urlProblem(oauth.issuer, ['oauth', 'issuer'])),
  ({ sandbox, sandbox_config }) =>
    sandbox_config !== undefined && sandbox === undefined
      ? fault(['sandbox_config'], 'holds nothing without sandbox: true', 'add sandbox: true, or false where it is to wait')
      : undefined,
  ({ command, sandbox, sandbox_config: limits }) =>
    sandbox && !limits?.network_access && command !== undefined && FETCHERS.includes(basename(command))
      ? fault(
          ['command'],
          `is ${basename(command)}, which fetches what it runs each time, and has no network in the sandbox`,
          'install the server once and name its program, or allow it: sandbox_config.network_access: true (svc mcp add --network)'
        )
      : undefined,
  ({ url, sandbox, sandbox_config: limits }) =>
    url !== undefined && sandbox && (limits?.filesystem_readonly === false || (limits?.allowed_paths?.length ?? 0) > 0)
      ? fault(
          ['sandbox_config', limits?.filesystem_readonly === false ? 'filesystem_readonly' : 'allowed_paths'],
          'is about files of this machine, and this server is somewhere else',
          'leave it out: of a remote server timeout and network_access are held here'
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
  return key === undefined ? undefined : fault([key], `belongs to ${of}, and this entry has a ${beside}`, `take ${key} out`)
}

function urlProblem(text: string, keys: readonly string[] = ['url']): EntryProblem | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !['http:', 'https:'].includes(url.protocol))
    return fault(keys, 'must be an address that begins with http:// or https://', 'write the whole address: https://host/mcp')
  if (url.username !== '' || url.password !== '')
    return fault(keys, 'must hold no name and password', 'put the key into a variable and name it in api_key_env')
  return undefined
}

import { basename } from 'node:path'
import { type CallContext, schema } from '@svc/core'
import type { Effect, Store } from '@svc/core/contracts'
import { type Typed, typed, type ValueOf } from '@svc/plugin-kit'

const seconds = (description: string) => typed.number(description, { exclusiveMinimum: 0, maximum: 86_400 })

const oauth = typed.object({
  client_id: typed.text('Client id of svc at the authorization server.'),
  client_secret: typed.text('Client secret; prefer client_secret_env.'),
  client_secret_env: typed.text('Environment variable that holds the client secret.'),
  token_url: typed.text('Token endpoint for client credentials; default: the discovery of the protocol.'),
  issuer: typed.text(
    'The only authorization server for logins, exactly as it names itself; may have a private address. Default: the one that the server names, at a public address or at the server itself.'
  ),
  scope: typed.text('Scopes to request, separated by spaces.'),
})

const sandbox = typed.object({
  timeout: seconds('Maximum seconds of a call; default 30.'),
  memory_limit: typed.size('Memory, for example 512M; default 512M.'),
  network_access: typed.flag('Allow network access; default false. For a remote server: allow addresses other than its own.'),
  filesystem_readonly: typed.flag('Mount the visible folders read-only; default true.'),
  allowed_paths: typed.texts('Files and folders that the server may write.'),
})

/** `mcp.clients[].sandbox_config` */
export type SandboxSettings = ValueOf<typeof sandbox>

/** Part of the names of its tools, of labels and of keys. */
const name: Typed<string> = {
  type: 'string',
  pattern: '^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$',
  patternHint: 'must be 1 to 32 letters, digits, _ and -',
  description: 'Name of the server; prefix of its tools.',
}
const env: Typed<{ readonly [name: string]: string }> = {
  type: 'object',
  additionalProperties: { type: 'string' },
  description: 'Variables of the command; ${NAME} inserts a variable of svc. The command inherits only PATH, HOME and the like.',
}
const effects: Typed<readonly Effect[]> = {
  type: 'array',
  items: { enum: ['read', 'write', 'execute', 'network'] },
  description: 'Effects of its tools; default execute and network.',
}

const RETRIES = { type: 'integer', minimum: 0, maximum: 1000 }

const client = typed.object(
  {
    name,
    url: typed.text('URL of a remote server (HTTP).'),
    command: typed.text('Program of a local server (stdio).'),
    args: typed.texts('Arguments of the command.', { items: { type: 'string' } }),
    env,
    tools: typed.texts('Names of the tools to use; default: all.'),
    timeout: seconds('Maximum seconds of a call; default 30.'),
    idle_timeout: typed.number(
      'Seconds without a call after which a command is stopped until the next one; 0 keeps it running; default 3600.',
      { minimum: 0, maximum: 31_536_000 }
    ),
    retry_attempts: typed.number('Further attempts after a failed connection; default 5.', RETRIES),
    api_key_env: typed.text('Environment variable that holds the API key.'),
    api_key_header: typed.choice(['authorization', 'x-api-key'], 'Header of the API key; default authorization (Bearer).'),
    oauth,
    sandbox: typed.flag('Run the command in the process sandbox; default false.'),
    sandbox_config: sandbox,
    allow: typed.texts('Patterns of the tools to use, for example read_*; default: all.'),
    deny: typed.texts('Patterns of the tools not to use; overrides allow.'),
    effects,
    workplace: typed.flag(
      'Whether its tools use files or processes of this machine, so that workflow runs that call them stay on it; default true for a command.'
    ),
    enabled: typed.flag('Set to false to disable the server.'),
  },
  ['name']
)

/** One MCP server in `mcp.clients` or `<svc home>/mcp.yaml`. Times are seconds. */
export type McpClientConfig = ValueOf<typeof client> & { readonly name: string }

/** `mcp.clients`: the servers, in order. */
const CLIENTS: Typed<readonly McpClientConfig[]> = {
  type: 'array',
  items: client,
  default: [],
  description: 'MCP servers whose tools svc uses; svc mcp add writes the same entries to mcp.yaml.',
}

export const MCP_CLIENTS = schema<readonly McpClientConfig[]>(CLIENTS)

/** The section `mcp`, as far as it belongs to this plugin. */
export interface McpConfig {
  readonly clients: readonly McpClientConfig[]
  readonly recheck_s: number
  readonly allow_stdio_over_http: boolean
}

/** What the list of servers is changed with. */
export interface EditContext {
  readonly config: Pick<McpConfig, 'clients' | 'allow_stdio_over_http'>
  readonly store: Store
  /** A change goes on when its caller leaves. */
  readonly lasting: CallContext
}

export const MCP_CONFIG = schema<McpConfig>(
  typed.object({
    clients: CLIENTS,
    allow_stdio_over_http: typed.flag(
      'Allow callers of the management API with the scope admin to add local programs (command, args, env) and to name any environment variable; default false. They can then run any program with the rights of svc.',
      { default: false }
    ),
    recheck_s: typed.number(
      'Seconds after which svc lists the tools of a remote MCP server again, to notice changes; 0 never does.',
      { minimum: 0, maximum: 86_400, default: 300 }
    ),
  })
)

/** `<svc home>/mcp.yaml` */
export const MCP_FILE = schema<{ readonly clients: readonly McpClientConfig[] }>(
  typed.object({ clients: { type: 'array', items: client, default: [] } })
)

/** A problem that the schema does not find: the keys of its place, and how to fix it. */
export interface EntryProblem {
  readonly keys: readonly string[]
  readonly message: string
  readonly hint: string
}

const problem = (keys: readonly string[], message: string, hint: string): EntryProblem => ({ keys, message, hint })

/** All problems of an entry that is valid by the schema. */
export const entryProblems = (entry: McpClientConfig): EntryProblem[] => [
  ...locationProblems(entry),
  ...credentialProblems(entry),
  ...sandboxProblems(entry),
]

/** The first problem of an entry that a user has written outside of the configuration. */
export function firstProblem(entry: McpClientConfig): (Omit<EntryProblem, 'hint'> & { readonly hint?: string }) | undefined {
  const [invalid] = MCP_CLIENTS.check([structuredClone(entry)])
  return invalid ? { keys: invalid.keys.slice(1), message: invalid.message } : entryProblems(entry)[0]
}

function* locationProblems(entry: McpClientConfig): Generator<EntryProblem> {
  const { url, command } = entry
  if ((url === undefined) === (command === undefined))
    yield problem(
      [],
      'must have either url or command',
      'Set url to https://… for a remote server, or command and args for a local program'
    )
  if (url !== undefined) yield* urlProblems(url, ['url'])
  if (url !== undefined) yield* misplaced(entry, ['args', 'env', 'idle_timeout'], 'a command', 'url')
  if (command !== undefined) yield* misplaced(entry, ['api_key_env', 'api_key_header', 'oauth'], 'a url', 'command')
}

function* misplaced(
  entry: McpClientConfig,
  keys: readonly (keyof McpClientConfig)[],
  of: string,
  beside: string
): Generator<EntryProblem> {
  const key = keys.find(one => entry[one] !== undefined)
  if (key !== undefined) yield problem([key], `is only for ${of}, but this entry has a ${beside}`, `Remove ${key}`)
}

function* credentialProblems({ api_key_env, api_key_header, oauth }: McpClientConfig): Generator<EntryProblem> {
  if (api_key_header !== undefined && api_key_env === undefined)
    yield problem(['api_key_header'], 'requires api_key_env', 'Set api_key_env to the name of the variable that holds the key')
  if (oauth === undefined) return
  const { client_id, client_secret, client_secret_env, token_url, issuer } = oauth
  if (api_key_env !== undefined) yield problem(['oauth'], 'cannot be combined with api_key_env', 'Remove one of the two')
  if (client_secret !== undefined && client_secret_env !== undefined)
    yield problem(['oauth', 'client_secret_env'], 'cannot be combined with client_secret', 'Remove one of the two')
  if (token_url !== undefined && client_id === undefined)
    yield problem(['oauth', 'token_url'], 'requires client_id and its secret', 'Set oauth.client_id and oauth.client_secret_env')
  if (token_url !== undefined) yield* urlProblems(token_url, ['oauth', 'token_url'])
  if (issuer !== undefined) yield* urlProblems(issuer, ['oauth', 'issuer'])
}

/** Programs that download other programs and run them. */
const FETCHERS: readonly string[] = ['npx', 'bunx', 'pnpx', 'uvx', 'pipx']

function* sandboxProblems({ url, command = '', sandbox, sandbox_config: limits }: McpClientConfig): Generator<EntryProblem> {
  if (limits !== undefined && sandbox === undefined)
    yield problem(
      ['sandbox_config'],
      'has no effect without sandbox: true',
      'Set sandbox to true, or to false to keep the values for later'
    )
  if (!sandbox) return
  const { network_access, filesystem_readonly, allowed_paths = [] } = limits ?? {}
  if (!network_access && FETCHERS.includes(basename(command)))
    yield problem(
      ['command'],
      `is ${basename(command)}, which downloads its program each time, but the sandbox has no network access`,
      'Install the server and set command to its program, or set sandbox_config.network_access to true (svc mcp add --network)'
    )
  if (url !== undefined && (filesystem_readonly === false || allowed_paths.length > 0))
    yield problem(
      ['sandbox_config', filesystem_readonly === false ? 'filesystem_readonly' : 'allowed_paths'],
      'applies to local files, but this server is remote',
      'Remove it; only timeout and network_access apply to a remote server'
    )
}

function* urlProblems(text: string, keys: readonly string[]): Generator<EntryProblem> {
  const url = URL.parse(text)
  if (url === null || !['http:', 'https:'].includes(url.protocol))
    yield problem(
      keys,
      'must be a URL that begins with http:// or https://',
      'Set the complete URL, for example https://host/mcp'
    )
  else if (url.username !== '' || url.password !== '')
    yield problem(
      keys,
      'must not contain a user name or a password',
      'Put the key into an environment variable, and set api_key_env to its name'
    )
}

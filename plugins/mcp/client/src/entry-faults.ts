import { basename } from 'node:path'
import type { McpClientConfig } from './settings.ts'

/** What no schema says of an entry: `keys` is where, `hint` what to do. */
export interface EntryFault {
  readonly keys: readonly string[]
  readonly message: string
  readonly hint: string
}

/** Programs that fetch others and run them. */
const FETCHERS: readonly string[] = ['npx', 'bunx', 'pnpx', 'uvx', 'pipx']

type Rule = (entry: McpClientConfig) => EntryFault | undefined
const fault = (keys: readonly string[], message: string, hint: string): EntryFault => ({ keys, message, hint })

/** All that is wrong with one entry that fits the schema. */
export const entryFaults = (entry: McpClientConfig): EntryFault[] =>
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
  ({ url }) => (url === undefined ? undefined : urlFault(url)),
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
  ({ oauth }) => (oauth?.token_url === undefined ? undefined : urlFault(oauth.token_url, ['oauth', 'token_url'])),
  ({ oauth }) => (oauth?.issuer === undefined ? undefined : urlFault(oauth.issuer, ['oauth', 'issuer'])),
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

function urlFault(text: string, keys: readonly string[] = ['url']): EntryFault | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !['http:', 'https:'].includes(url.protocol))
    return fault(keys, 'must be an address that begins with http:// or https://', 'write the whole address: https://host/mcp')
  if (url.username !== '' || url.password !== '')
    return fault(keys, 'must hold no name and password', 'put the key into a variable and name it in api_key_env')
  return undefined
}

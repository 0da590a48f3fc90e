import { JSON_FLAG, lineInvalid, readLine } from '@svc/command-line'
import type { Command } from '@svc/core/contracts'
import { shownPath } from '@svc/core'
import { entryFaults } from '../entry-faults.ts'
import { nameTaken } from '../errors.ts'
import { addToFile } from '../home-edit.ts'
import { homeFile } from '../home-file.ts'
import { groundOf } from '../sandboxed.ts'
import { MCP_CLIENTS, type McpClientConfig } from '../settings.ts'
import { configuredServers, takeUp, useOf } from './ground.ts'
import { USAGE } from './line.ts'

const OPTIONS = {
  env: { type: 'string', multiple: true },
  'api-key-env': { type: 'string' },
  issuer: { type: 'string' },
  'allow-path': { type: 'string', multiple: true },
  timeout: { type: 'string' },
  sandbox: { type: 'boolean' },
  network: { type: 'boolean' },
  ...JSON_FLAG,
} as const

/** `svc mcp add <name> <url | -- command args…>`: writes it to mcp.yaml; a running server takes it up. */
const add: Command = async call => {
  const end = call.args.includes('--') ? call.args.indexOf('--') : call.args.length
  const program = call.args.slice(end + 1)
  const { values, positionals } = readLine(call.args.slice(0, end), USAGE.add, OPTIONS, program.length > 0 ? [1, 1] : [2, 2])
  const [name = '', url] = positionals
  const entry = entryOf({ name, ...(url === undefined ? {} : { url }), program, ...values })
  const servers = await configuredServers(call)
  const other = servers.find(one => one.entry.name === name)
  if (other) throw nameTaken(name, other.where)
  const file = homeFile(call.home)
  await addToFile(file, [entry])
  const runs = groundOf(entry)
  if (values.json) call.print(JSON.stringify({ added: name, file, runs }))
  else call.print(`added ${name} to ${shownPath(file)}; svc mcp test ${name} tries it`)
  if (runs !== 'remote') call.note(`${name} runs ${GROUNDS[runs](name)}`)
  return takeUp(call, useOf(call, 'mcp add'))
}

export default add

const GROUNDS = {
  'all rights': (name: string) =>
    `with all rights of svc; to have it in the process sandbox: svc mcp remove ${name}, then add it with --sandbox`,
  sandbox: () => 'in the process sandbox; --network and --allow-path are what gives it more',
} as const

interface Wish {
  readonly name: string
  readonly url?: string
  readonly program: readonly string[]
  readonly env?: readonly string[] | undefined
  readonly 'api-key-env'?: string | undefined
  readonly issuer?: string | undefined
  readonly 'allow-path'?: readonly string[] | undefined
  readonly timeout?: string | undefined
  readonly sandbox?: boolean | undefined
  readonly network?: boolean | undefined
}

/** The entry as it is written. Throws COMMAND_LINE_INVALID for what an entry cannot say. */
function entryOf(wish: Wish): McpClientConfig {
  const [command, ...args] = wish.program
  const limits = {
    ...(wish.network ? { network_access: true } : {}),
    ...(wish['allow-path'] === undefined ? {} : { allowed_paths: wish['allow-path'] }),
  }
  const hasLimits = Object.keys(limits).length > 0
  const entry: McpClientConfig = {
    name: wish.name,
    ...(wish.url === undefined ? {} : { url: wish.url }),
    ...(command === undefined ? {} : { command, args }),
    ...(wish.env === undefined ? {} : { env: Object.fromEntries(wish.env.map(pairOf)) }),
    ...(wish['api-key-env'] === undefined ? {} : { api_key_env: wish['api-key-env'] }),
    ...(wish.issuer === undefined ? {} : { oauth: { issuer: wish.issuer } }),
    ...(wish.timeout === undefined ? {} : { timeout: Number(wish.timeout) }),
    ...(wish.sandbox || hasLimits ? { sandbox: true } : {}),
    ...(hasLimits ? { sandbox_config: limits } : {}),
  }
  const [fault] = MCP_CLIENTS.check([structuredClone(entry)])
  if (fault) throw lineInvalid(`${fault.keys.slice(1).join('.')} ${fault.message}`, USAGE.add)
  const [wrong] = entryFaults(entry)
  if (wrong) throw lineInvalid(`${wrong.keys.join('.') || 'it'} ${wrong.message}: ${wrong.mend}`, USAGE.add)
  return entry
}

function pairOf(text: string): [string, string] {
  const at = text.indexOf('=')
  if (at > 0) return [text.slice(0, at), text.slice(at + 1)]
  throw lineInvalid('--env is NAME=value; NAME=${OTHER} takes the value of a variable of the server', USAGE.add)
}

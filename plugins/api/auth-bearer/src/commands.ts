import { Flags, JSON_FLAG, SvcCommand, table, Args } from '@svc/cli/command'
import { codeOf, messageOf, systemContext } from '@svc/core'
import {
  API_SCOPES,
  type CommandContext,
  type Json,
  Store,
  TokenCreated,
  type TokenInfo,
  TokenRevoked,
  Tokens,
} from '@svc/core/contracts'
import { lineInvalid, sharedStore } from '@svc/plugin-kit'
import { reachServerIfAny } from '@svc/runtime'
import { TOPIC } from './tokens.ts'

const { names: SCOPES } = API_SCOPES

/** The plugins that the commands start. */
const NEEDED = { only: [Tokens.name, Store.name] }

const CREATE = 'tokens create [--name <name>] [--scope <scope>]... [--ttl <30d>] [--json]'

/** Parses `--scope chat --scope read` or `--scope chat,read`. Returns the scopes in the order of `SCOPES`. Throws COMMAND_LINE_INVALID. */
function scopesOf(given: readonly string[]): string[] {
  const requested = new Set(given.flatMap(list => list.split(',')).map(scope => scope.trim()))
  const known: ReadonlySet<string> = new Set(SCOPES)
  const [unknown] = requested.difference(known)
  if (unknown !== undefined) throw lineInvalid(`there is no scope "${unknown}"; the scopes are ${SCOPES.join(', ')}`, CREATE)
  return SCOPES.filter(scope => requested.has(scope))
}

const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const LONGEST_MS = 3650 * 86_400_000

/** Parses `30d`, `12h`, `90m` or `3600s` to milliseconds. Throws COMMAND_LINE_INVALID. */
function ttlOf(given: string): number {
  const [, count = '', unit = ''] = /^(\d{1,9})([smhd])$/.exec(given) ?? []
  const ms = Number(count) * (UNITS[unit] ?? 0)
  if (ms >= 1_000 && ms <= LONGEST_MS) return ms
  throw lineInvalid('--ttl is a whole number with s, m, h or d, from 1s to 3650d: 30d, 12h, 90m', CREATE)
}

/** `svc tokens create`: prints a new token, once. Running servers accept it at once. */
export class TokensCreate extends SvcCommand {
  static override summary = 'Create an access token for the API'
  static override description = 'The command shows the token only once. Running servers accept it at once.'
  static override examples = ['<%= config.bin %> <%= command.id %> --name ci --scope chat,read --ttl 12h']
  static override flags = {
    name: Flags.string({ summary: 'Name shown in lists and logs (default: its id)', helpValue: '<name>' }),
    scope: Flags.string({
      summary: `Scopes, separated by commas: ${SCOPES.join(', ')} (default: all except admin)`,
      helpValue: '<scope>',
      multiple: true,
      multipleNonGreedy: true,
    }),
    ttl: Flags.string({ summary: 'Lifetime, up to 3650d: 30d, 12h, 90m', helpValue: '<time>', default: '30d' }),
    ...JSON_FLAG,
  }

  async run(): Promise<void> {
    const { flags } = await this.parse(TokensCreate)
    const options = {
      ...(flags.name === undefined ? {} : { name: flags.name }),
      ...(flags.scope === undefined ? {} : { scopes: scopesOf(flags.scope) }),
      ttlMs: ttlOf(flags.ttl),
    }
    const ctx = systemContext(this.signal, 'svc tokens create')
    const host = await this.host(NEEDED)
    await sharedStore(host, 'no server would accept the token', ctx)
    const { token, info } = await host.service(Tokens).create(options, ctx).catch(rejectLine)
    await announce(this, TokenCreated.type, info)
    if (flags.json) return this.print(JSON.stringify({ token, ...info }))
    this.print(token)
    this.note(`${info.id} (${info.name}): ${info.scopes.join(' ')}, until ${info.expires}. The token is shown only once.`)
  }
}

/** The service checks the name: the command line was wrong. */
function rejectLine(error: unknown): never {
  throw codeOf(error) === 'INVALID_VALUE' ? lineInvalid(messageOf(error), CREATE) : error
}

const HEAD = ['ID', 'NAME', 'SCOPES', 'CREATED', 'EXPIRES', 'LAST USED']

/** `svc tokens list`: lists the tokens without their text, which the store does not have. */
export class TokensList extends SvcCommand {
  static override summary = 'List the access tokens'
  static override examples = ['<%= config.bin %> <%= command.id %>']
  static override flags = JSON_FLAG

  async run(): Promise<void> {
    const { flags } = await this.parse(TokensList)
    const ctx = systemContext(this.signal, 'svc tokens list')
    const all = await (await this.host(NEEDED)).service(Tokens).list(ctx)
    if (flags.json) return this.print(JSON.stringify({ tokens: all }))
    if (all.length === 0) return this.note('there are no tokens; run `svc tokens create` to create a token')
    this.print(table([HEAD, ...all.map(cells)]))
  }
}

function cells({ id, name, scopes, created, expires, used }: TokenInfo): string[] {
  const end = Date.parse(expires) <= Date.now() ? `${expires} (expired)` : expires
  return [id, name, scopes.join(' '), created, end, used ?? 'never']
}

/** `svc tokens revoke <token>`: returns when no worker of any server accepts the token any more. */
export class TokensRevoke extends SvcCommand {
  static override summary = 'Revoke an access token at once'
  static override examples = ['<%= config.bin %> <%= command.id %> ci']
  static override args = { token: Args.string({ description: 'Name or id of the token', required: true, ignoreStdin: true }) }
  static override flags = JSON_FLAG

  async run(): Promise<void> {
    const { args, flags } = await this.parse(TokensRevoke)
    const ctx = systemContext(this.signal, 'svc tokens revoke')
    const revoked = await (await this.host(NEEDED)).service(Tokens).revoke(args.token, ctx)
    for (const token of revoked) await announce(this, TokenRevoked.type, token)
    if (flags.json) return this.print(JSON.stringify({ revoked }))
    for (const { id, name } of revoked) this.print(`revoked ${id} (${name})`)
  }
}

const ANNOUNCE_MS = 2_000

/** The event of a change, published by the running server. The change itself is done: without a server, or if it is busy, there is no event. */
async function announce({ home, signal }: CommandContext, type: string, token: TokenInfo): Promise<void> {
  const ctx = systemContext(AbortSignal.any([signal, AbortSignal.timeout(ANNOUNCE_MS)]), 'svc tokens')
  try {
    using server = await reachServerIfAny(home, {})
    for await (const _ of server?.control.ask(TOPIC, { type, token } as unknown as Json, ctx) ?? []) break
  } catch {
    signal.throwIfAborted()
  }
}

export const COMMANDS = { 'tokens:create': TokensCreate, 'tokens:list': TokensList, 'tokens:revoke': TokensRevoke }

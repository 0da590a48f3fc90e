import { codeOf, COMMANDS_MODULE, type ErrorParts, messageOf, nearest, type SvcError, svcError } from '@svc/core'
import type { ErrorRecord } from '@svc/core/contracts'

/** No answer came; where the certificate of what listens there is at fault, that is said. */
export function serverUnreachable(url: string, cause: unknown): SvcError {
  const tls = tlsFault(cause)
  if (tls === undefined)
    return svcError('SERVER_UNREACHABLE', `nothing answers at ${url}`, {
      cause,
      details: { url },
      mend: 'check the address, or start the server with `svc serve`',
    })
  const message = `the server at ${url} answers, but its certificate is not trusted (${tls})`
  return svcError('SERVER_UNREACHABLE', message, { cause, details: { url, tls }, mend: tlsMend(tls) })
}

/** A server that sends its clients elsewhere: who is asked with a credential says where that goes. */
export const serverRedirects = (url: string, status: number, place: string | undefined): SvcError =>
  svcError(
    'SERVER_REDIRECTS',
    `${url} answers with a redirect (${status}) to ${place ?? 'no address'}, and redirects are not followed`,
    {
      details: { url, status, ...(place === undefined ? {} : { to: place }) },
      mend: place === undefined ? 'check the address' : `where you trust it, name it: --url ${place}`,
    }
  )

const TLS_FAULT = /^(ERR_TLS_CERT_|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_(GET_ISSUER_|VERIFY_))/

/** `fetch` keeps the code in the cause of what it throws. */
function tlsFault(error: unknown): string | undefined {
  const codes = [codeOf(error), error instanceof Error ? codeOf(error.cause) : undefined]
  return codes.find(code => code !== undefined && TLS_FAULT.test(code))
}

function tlsMend(code: string): string {
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return 'take an address that the certificate names'
  if (code === 'CERT_HAS_EXPIRED') return 'renew the certificate of the server'
  return 'where you trust it, set NODE_EXTRA_CA_CERTS=<cert.pem> to its certificate or that of its issuer'
}

/** An error in the terms of the API, as whoever sits before the terminal is told it. */
export function refused(
  { error, error_code: code, details }: Omit<ErrorRecord, 'success'>,
  { mend = mendOf(code, details), ...parts }: Pick<ErrorParts, 'where' | 'mend' | 'cause'> = {}
): SvcError {
  return svcError(code, error, { ...parts, details: { ...details }, ...(mend === undefined ? {} : { mend }) })
}

const MOST_NAMES = 20

function mendOf(code: string, { available, allowed, scope, retry_after: seconds }: ErrorRecord['details']): string | undefined {
  const names = [available, allowed].find(Array.isArray)?.slice(0, MOST_NAMES)
  if (names && names.length > 0) return `one of: ${names.join(', ')}`
  if (code === 'AUTHENTICATION_FAILED') return 'put an API key or a token into SVC_API_KEY'
  if (code === 'FORBIDDEN' && typeof scope === 'string') return `put a credential with the scope "${scope}" into SVC_API_KEY`
  return typeof seconds === 'number' ? `try again in ${seconds} s` : undefined
}

export const streamBroken = (url: string): SvcError =>
  svcError('STREAM_BROKEN', 'the server closed the stream before the end of the reply', {
    where: url,
    mend: 'what arrived is shown; ask again',
  })

export const urlInvalid = (url: string): SvcError =>
  svcError('URL_INVALID', `"${url}" is no address of a server`, { mend: 'write it like http://127.0.0.1:8080' })

export const nothingToSay = (): SvcError =>
  svcError('MESSAGE_MISSING', 'there is no message: neither an argument nor anything on the standard input', {
    mend: 'write `svc chat "your question"`',
  })

export function keyUnknown(key: string, known: readonly string[]): SvcError {
  const near = nearest(key, known)
  const mend = `${near === undefined ? '' : `did you mean "${near}"? `}\`svc config show\` lists what is in force, docs/configuration.md all keys`
  return svcError('CONFIG_UNKNOWN_KEY', `${key} is no key of this configuration`, { mend })
}

/** A port that a server of this very home has. */
export const portOurs = (host: string, port: number, pid: number, plugin: string | undefined): SvcError =>
  svcError('PORT_TAKEN', `${host}:${port} is in use by a server of this svc home (process ${pid})`, {
    ...(plugin === undefined ? {} : { plugin }),
    details: { host, port, pid },
    mend: `it runs already: \`svc reload\` makes it take up a changed configuration; stop it (kill ${pid}) to start anew, or serve beside it with --port`,
  })

export const commandBroken = (command: string, plugin: string, cause: unknown): SvcError =>
  svcError('COMMAND_BROKEN', `the module of the command "${command}" cannot be used: ${messageOf(cause)}`, {
    plugin,
    cause,
    mend:
      (Object(cause) as { mend?: string }).mend ??
      `The module "${COMMANDS_MODULE}" must export COMMANDS: the oclif classes by their names, with ":" between the words`,
  })

/** The import of a module of a plugin does not end. */
export const importTimeout = (plugin: string, limitMs: number): SvcError =>
  svcError('TIMEOUT', `its import did not end within ${limitMs / 1000} s`, {
    plugin,
    details: { limit_ms: limitMs },
    mend: 'Let the module only define things: what waits or connects belongs into setup() or run()',
  })

/** What stands on the command line is wrong; `known` are the ids of commands. */
/** A command line whose arguments or flags are wrong. `known`: the ids of all commands. */
export function commandLineInvalid(message: string, argv: readonly string[], known: readonly string[]): SvcError {
  const words = known.map(id => id.replaceAll(':', ' '))
  return svcError('COMMAND_LINE_INVALID', message, { mend: helpFor(argv, words) })
}

/** A command line that names no command: `said` are the words that were taken for one. */
export function commandUnknown(said: readonly string[], argv: readonly string[], known: readonly string[]): SvcError {
  const words = known.map(id => id.replaceAll(':', ' '))
  const near = nearCommand(argv, words)
  const topics = words.map(one => one.split(' ')[0]!)
  const more = argv.includes('--help') ? '; with --config <file> also the commands that a configuration adds' : ''
  return svcError('COMMAND_LINE_INVALID', `there is no command "${said.join(' ')}"`, {
    mend: `${near === undefined ? '' : `did you mean "svc ${near}"? `}${helpFor(argv, topics)}${more}`,
  })
}

/** Below a topic that is there by the second word alone; else by two words, then by the first as a command and as a topic. */
function nearCommand(argv: readonly string[], words: readonly string[]): string | undefined {
  const [first = '', second = ''] = argv.slice(
    0,
    [...argv, '-'].findIndex(one => one.startsWith('-'))
  )
  const ofLength = (count: number) => words.filter(one => one.split(' ').length === count)
  const below = ofLength(2).flatMap(one => (one.startsWith(`${first} `) ? one.slice(first.length + 1) : []))
  const near = below.length > 0 ? nearest(second, below) : undefined
  if (below.length > 0) return near && `${first} ${near}`
  const topics = new Set(words.map(one => one.split(' ')[0]!))
  return nearest(`${first} ${second}`, ofLength(2)) ?? nearest(first, ofLength(1)) ?? nearest(first, [...topics])
}

/** Help of the longest name that the command line begins with, else of svc. */
function helpFor(argv: readonly string[], names: readonly string[]): string {
  const line = `${argv.join(' ')} `
  const [found] = names.filter(one => line.startsWith(`${one} `)).sort((a, b) => b.length - a.length)
  return `svc ${found === undefined ? '' : `${found} `}--help shows what there is`
}

const nearOf = (name: string, known: readonly string[], rest: string) => {
  const near = nearest(name, known)
  return near === undefined ? rest : `did you mean "${near}"? ${rest}`
}

export const toolUnknown = (name: string, known: readonly string[]): SvcError =>
  svcError('TOOL_UNKNOWN', `there is no tool "${name}"`, { mend: nearOf(name, known, '`svc tools list` shows what there is') })

/** The same where no server was asked: a host of its own has the tools of its plugins alone. */
export const toolUnknownHere = (name: string, known: readonly string[]): SvcError =>
  nearest(name, known) === undefined
    ? svcError('TOOL_UNKNOWN', `there is no tool "${name}" in a host of its own`, {
        mend: '`svc tools list` shows what there is; tools of MCP servers are there only in a server that runs (svc serve), not here',
      })
    : toolUnknown(name, known)

export const categoryUnknown = (name: string, known: readonly string[]): SvcError =>
  svcError('CATEGORY_UNKNOWN', `no tool is of the category "${name}"`, {
    mend: known.length > 0 ? `one of: ${known.join(', ')}` : 'there are no tools at all',
  })

export const providerUnknown = (name: string, known: readonly string[]): SvcError =>
  svcError('PROVIDER_UNKNOWN', `there is no provider "${name}"`, {
    mend: known.length > 0 ? `one of: ${known.join(', ')}` : 'configure one: providers: { local: {} }',
  })

export const argumentsInvalid = (message: string, mend: string): SvcError => svcError('TOOL_ARGUMENTS_INVALID', message, { mend })

export const answeredByAnother = (provider: string, model: string): SvcError =>
  svcError('PROVIDER_ERROR', `${provider}/${model} answered in its stead`)

export const answerTooLarge = (url: string, limit: number): SvcError =>
  svcError('ANSWER_TOO_LARGE', `the answer has more than ${limit} characters`, {
    where: url,
    mend: 'check the address: no svc answers so',
  })

export const pipeMissing = (spoken: string): SvcError =>
  svcError('PIPE_MISSING', `no loaded plugin speaks ${spoken} over standard input and output`, {
    mend: 'take the plugin that stands in for "@svc/plugin-mcp-server" out of "plugins", or serve on a port: svc mcp serve --port 8081',
  })

/** What only the command line itself can be blamed for. */
const USAGE = [
  'CONSENT_MISSING',
  'COMMAND_LINE_INVALID',
  'MESSAGE_MISSING',
  'TOOL_UNKNOWN',
  'CATEGORY_UNKNOWN',
  'PROVIDER_UNKNOWN',
  'TOOL_ARGUMENTS_INVALID',
]

/** Whether nothing was done, because what was asked for is wrong: exit code 2. */
export const isUsage = (code: string | undefined): boolean => code !== undefined && USAGE.includes(code)

export const slashUnknown = (command: string, near: string | undefined): SvcError =>
  svcError('COMMAND_UNKNOWN', `there is no /${command.slice(0, 40)}`, {
    mend: `${near === undefined ? '' : `did you mean "/${near}"? `}/help lists what there is; begin with // to say it to the model`,
  })

export const onlyInProcess = (plugin: string, why: string): SvcError =>
  svcError('NOT_ISOLABLE', `cannot run in a process of its own: ${why}`, {
    plugin,
    mend: `if you trust its code: { use: "${plugin}", isolation: "in-process" } in "plugins"; svc plugins install asks for --trust`,
  })

export const pluginForeign = (path: string, reason: string) =>
  svcError('PLUGIN_FOREIGN', `the plugin in ${path} is not loaded, because a file of it could be another user's: ${reason}`, {
    where: path,
    mend: 'If it is yours, make yourself its owner and take the write permission from others (chown, chmod go-w)',
  })

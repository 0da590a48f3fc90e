import { COMMANDS_MODULE, codeOf, messageOf, nearest, type SvcError, svcError } from '@svc/core'

/** No answer came; where the certificate of what listens there is at fault, that is said. */
export function serverUnreachable(url: string, cause: unknown): SvcError {
  const tls = tlsFault(cause)
  if (tls === undefined)
    return svcError('SERVER_UNREACHABLE', `nothing answers at ${url}`, {
      cause,
      details: { url },
      hint: 'check the address, or start the server with `svc serve`',
    })
  const message = `the server at ${url} answers, but its certificate is not trusted (${tls})`
  return svcError('SERVER_UNREACHABLE', message, { cause, details: { url, tls }, hint: tlsHint(tls) })
}

/** A server that sends its clients elsewhere: who is asked with a credential says where that goes. */
export const serverRedirects = (url: string, status: number, place: string | undefined): SvcError =>
  svcError(
    'SERVER_REDIRECTS',
    `${url} answers with a redirect (${status}) to ${place ?? 'no address'}, and redirects are not followed`,
    {
      details: { url, status, ...(place === undefined ? {} : { to: place }) },
      hint: place === undefined ? 'check the address' : `where you trust it, name it: --url ${place}`,
    }
  )

const TLS_FAULT = /^(ERR_TLS_CERT_|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_(GET_ISSUER_|VERIFY_))/

/** `fetch` keeps the code in the cause of what it throws. */
function tlsFault(error: unknown): string | undefined {
  const codes = [codeOf(error), error instanceof Error ? codeOf(error.cause) : undefined]
  return codes.find(code => code !== undefined && TLS_FAULT.test(code))
}

function tlsHint(code: string): string {
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return 'take an address that the certificate names'
  if (code === 'CERT_HAS_EXPIRED') return 'renew the certificate of the server'
  return 'where you trust it, set NODE_EXTRA_CA_CERTS=<cert.pem> to its certificate or that of its issuer'
}

export const urlInvalid = (url: string): SvcError =>
  svcError('URL_INVALID', `"${url}" is no address of a server`, { hint: 'write it like http://127.0.0.1:8080' })

/** A port that a server of this very home has. */
export const portOurs = (host: string, port: number, pid: number, plugin: string | undefined): SvcError =>
  svcError('PORT_TAKEN', `${host}:${port} is in use by a server of this svc home (process ${pid})`, {
    ...(plugin === undefined ? {} : { plugin }),
    details: { host, port, pid },
    hint: `it runs already: \`svc reload\` makes it take up a changed configuration; stop it (kill ${pid}) to start anew, or serve beside it with --port`,
  })

export const commandBroken = (command: string, plugin: string, cause: unknown): SvcError =>
  svcError('COMMAND_BROKEN', `the module of the command "${command}" cannot be used: ${messageOf(cause)}`, {
    plugin,
    cause,
    hint:
      (Object(cause) as { hint?: string }).hint ??
      `The module "${COMMANDS_MODULE}" must export COMMANDS: the oclif classes by their names, with ":" between the words`,
  })

/** The import of a module of a plugin does not end. */
export const importTimeout = (plugin: string, limitMs: number): SvcError =>
  svcError('TIMEOUT', `its import did not end within ${limitMs / 1000} s`, {
    plugin,
    details: { limit_ms: limitMs },
    hint: 'Let the module only define things: what waits or connects belongs into setup() or run()',
  })

/** A command line whose arguments or flags are wrong. `known`: the ids of all commands. */
export function commandLineInvalid(message: string, argv: readonly string[], known: readonly string[]): SvcError {
  const words = known.map(id => id.replaceAll(':', ' '))
  return svcError('COMMAND_LINE_INVALID', message, { hint: helpFor(argv, words) })
}

/** A command line that names no command: `said` are the words that were taken for one. */
export function commandUnknown(said: readonly string[], argv: readonly string[], known: readonly string[]): SvcError {
  const words = known.map(id => id.replaceAll(':', ' '))
  const near = nearCommand(argv, words)
  const topics = words.map(one => one.split(' ')[0]!)
  const more = argv.includes('--help') ? '; with --config <file> also the commands that a configuration adds' : ''
  return svcError('COMMAND_LINE_INVALID', `there is no command "${said.join(' ')}"`, {
    hint: `${near === undefined ? '' : `did you mean "svc ${near}"? `}${helpFor(argv, topics)}${more}`,
  })
}

/** A command of a plugin that came with svc and that the configuration does not load. */
export const commandLeftOut = (word: string, plugin: string): SvcError =>
  svcError('COMMAND_LINE_INVALID', `"${word}" is a command of ${plugin}, and the configuration leaves that plugin out`, {
    hint: `Remove { use: "${plugin}", enabled: false } from "plugins". \`svc config show\` names the file`,
  })

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

export const answerTooLarge = (url: string, limit: number): SvcError =>
  svcError('ANSWER_TOO_LARGE', `the answer has more than ${limit} characters`, {
    where: url,
    hint: 'check the address: no svc answers so',
  })

export const pipeMissing = (spoken: string): SvcError =>
  svcError('PIPE_MISSING', `no loaded plugin speaks ${spoken} over standard input and output`, {
    hint: 'take the plugin that stands in for "@svc/plugin-mcp-server" out of "plugins", or serve on a port: svc mcp serve --port 8081',
  })

/** What only the command line itself can be blamed for. */
const USAGE = ['CONSENT_MISSING', 'COMMAND_LINE_INVALID']

/** Whether nothing was done, because what was asked for is wrong: exit code 2. */
export const isUsage = (code: string | undefined): boolean => code !== undefined && USAGE.includes(code)

export const onlyInProcess = (plugin: string, why: string): SvcError =>
  svcError('NOT_ISOLABLE', `cannot run in a process of its own: ${why}`, {
    plugin,
    hint: `if you trust its code: { use: "${plugin}", isolation: "in-process" } in "plugins"; svc plugins install asks for --trust`,
  })

export const pluginForeign = (path: string, reason: string) =>
  svcError('PLUGIN_FOREIGN', `the plugin in ${path} is not loaded, because a file of it could be another user's: ${reason}`, {
    where: path,
    hint: 'If it is yours, make yourself its owner and take the write permission from others (chown, chmod go-w)',
  })

/** A start on trial that gave no sign of life. */
export const trialHung = (ms: number): SvcError =>
  svcError('SETUP_TIMEOUT', `the start with them gave no sign of life for ${ms / 1000} s: a setup keeps its process busy`, {
    hint: 'a plugin with --isolation in-process does not let go of the process; fix its setup, or install it without --trust',
  })

/** A start on trial that ended without a word. */
export const trialEnded = (how: string): SvcError =>
  svcError('SETUP_FAILED', `the start with them ended its process (${how})`, {
    hint: 'a plugin with --isolation in-process ends the process in its setup; fix that, or install it without --trust',
  })

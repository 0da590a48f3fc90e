import { COMMANDS_MODULE, codeOf, messageOf, nearest, type SvcError, svcError } from '@svc/core'

/** The server does not answer, not in time, or its certificate is not trusted. */
export function serverUnreachable(url: string, cause: unknown): SvcError {
  if (isTimeout(cause))
    return svcError('SERVER_UNREACHABLE', `the server at ${url} has not answered in time`, {
      cause,
      details: { url },
      hint: 'Try again, and read the log of the server: it can wait for its store',
    })
  const tls = tlsProblem(cause)
  if (tls === undefined)
    return svcError('SERVER_UNREACHABLE', `no server answers at ${url}`, {
      cause,
      details: { url },
      hint: 'Check the address, or start the server with `svc serve`',
    })
  const message = `the server at ${url} answers, but its certificate is not trusted (${tls})`
  return svcError('SERVER_UNREACHABLE', message, { cause, details: { url, tls }, hint: tlsHint(tls) })
}

/** The server redirects. svc does not follow, because it would send the credential along. */
export const serverRedirects = (url: string, status: number, place: string | undefined): SvcError =>
  svcError(
    'SERVER_REDIRECTS',
    `${url} answers with a redirect (${status}) to ${place ?? 'an unknown address'}, and svc does not follow redirects`,
    {
      details: { url, status, ...(place === undefined ? {} : { to: place }) },
      hint: place === undefined ? 'Check the address' : `If you trust that server, use --url ${place}`,
    }
  )

/** `fetch` throws the reason of the signal; `node:http` keeps it in the cause. */
const isTimeout = (error: unknown): boolean => error instanceof Error && (error.name === 'TimeoutError' || isTimeout(error.cause))

const TLS_FAULT = /^(ERR_TLS_CERT_|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_(GET_ISSUER_|VERIFY_))/

/** `fetch` keeps the code in the cause of what it throws. */
function tlsProblem(error: unknown): string | undefined {
  const codes = [codeOf(error), error instanceof Error ? codeOf(error.cause) : undefined]
  return codes.find(code => code !== undefined && TLS_FAULT.test(code))
}

function tlsHint(code: string): string {
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return 'Use an address that the certificate names'
  if (code === 'CERT_HAS_EXPIRED') return 'Renew the certificate of the server'
  return 'If you trust it, set NODE_EXTRA_CA_CERTS=<cert.pem> to its certificate or to that of its issuer'
}

export const urlInvalid = (url: string): SvcError =>
  svcError('URL_INVALID', `"${url}" is not the address of a server`, { hint: 'Write it like http://127.0.0.1:8080' })

/** Its message never contains the header, which can be a secret. */
export const headerInvalid = (why: string): SvcError =>
  svcError('HEADER_INVALID', why, { hint: "Write --header 'Name: value', or --header @file with one header a line" })

/** Its message never contains the answer of the helper, which is secret. */
export const helperFailed = (why: string): SvcError =>
  svcError('CREDENTIAL_HELPER_FAILED', `the program in SVC_CREDENTIAL_HELPER ${why}`, {
    hint: 'Correct SVC_CREDENTIAL_HELPER, or unset it and set SVC_API_KEY',
  })

/** A server of this svc home uses the port. */
export const portOurs = (host: string, port: number, pid: number, plugin: string | undefined): SvcError =>
  svcError('PORT_TAKEN', `${host}:${port} is in use by a server of this svc home (process ${pid})`, {
    ...(plugin === undefined ? {} : { plugin }),
    details: { host, port, pid },
    hint: `Run \`svc reload\` to apply a changed configuration. Stop the server (kill ${pid}) to restart it, or use another port with --port`,
  })

export const commandBroken = (command: string, plugin: string, cause: unknown): SvcError =>
  svcError('COMMAND_BROKEN', `cannot load the module of the command "${command}": ${messageOf(cause)}`, {
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
    hint: 'Let the module only define things. Move code that waits or connects into setup() or run()',
  })

/** A command line whose arguments or flags are wrong. `known`: the ids of all commands. */
export function commandLineInvalid(message: string, argv: readonly string[], known: readonly string[]): SvcError {
  const words = known.map(id => id.replaceAll(':', ' '))
  return svcError('COMMAND_LINE_INVALID', message, { hint: helpFor(argv, words) })
}

/** A command line that names no command. `said`: the words of the command. */
export function commandUnknown(said: readonly string[], argv: readonly string[], known: readonly string[]): SvcError {
  const words = known.map(id => id.replaceAll(':', ' '))
  const near = nearCommand(argv, words)
  const topics = words.map(word => word.split(' ')[0]!)
  const more = argv.includes('--help') ? '; with --config <file> also the commands of a configuration' : ''
  return svcError('COMMAND_LINE_INVALID', `there is no command "${said.join(' ')}"`, {
    hint: `${near === undefined ? '' : `did you mean "svc ${near}"? `}${helpFor(argv, topics)}${more}`,
  })
}

/** A command of a plugin that comes with svc and that the configuration disables. */
export const commandLeftOut = (word: string, plugin: string): SvcError =>
  svcError('COMMAND_LINE_INVALID', `"${word}" is a command of ${plugin}, which the configuration disables`, {
    hint: `Remove { use: "${plugin}", enabled: false } from "plugins". \`svc config show\` names the file`,
  })

/** A command for the file of the embedded store, of which PostgreSQL takes the place. */
export const commandOfEmbedded = (words: readonly string[]): SvcError =>
  svcError(
    'COMMAND_LINE_INVALID',
    `"svc ${words.slice(0, 2).join(' ')}" works on the file of the embedded store, but store.url selects PostgreSQL`,
    {
      hint: 'Use pg_dump and pg_restore, or a base backup with a WAL archive for recovery to a point in time: see "Back up" in docs/guides/scale.md',
    }
  )

/** A command of a plugin that a setting selects. */
export const commandUnselected = (argv: readonly string[], plugin: string, selector: string): SvcError => {
  const words = argv
    .slice(
      0,
      [...argv, '-'].findIndex(word => word.startsWith('-'))
    )
    .slice(0, 2)
    .join(' ')
  return svcError('COMMAND_LINE_INVALID', `"svc ${words}" is a command of ${plugin}, which the configuration does not select`, {
    hint: `Set ${selector}, in the configuration or with a variable such as SVC_STORE__URL`,
  })
}

/** Compares the second word within a known topic; otherwise both words, then the first word with commands and topics. */
function nearCommand(argv: readonly string[], words: readonly string[]): string | undefined {
  const [first = '', second = ''] = argv.slice(
    0,
    [...argv, '-'].findIndex(item => item.startsWith('-'))
  )
  const ofLength = (count: number) => words.filter(word => word.split(' ').length === count)
  const below = ofLength(2).flatMap(item => (item.startsWith(`${first} `) ? item.slice(first.length + 1) : []))
  const near = below.length > 0 ? nearest(second, below) : undefined
  if (below.length > 0) return near && `${first} ${near}`
  const topics = new Set(words.map(word => word.split(' ')[0]!))
  return nearest(`${first} ${second}`, ofLength(2)) ?? nearest(first, ofLength(1)) ?? nearest(first, [...topics])
}

/** Suggests the help of the longest known name that the command line begins with, or of svc. */
function helpFor(argv: readonly string[], names: readonly string[]): string {
  const line = `${argv.join(' ')} `
  const [found] = names.filter(name => line.startsWith(`${name} `)).sort((a, b) => b.length - a.length)
  return `svc ${found === undefined ? '' : `${found} `}--help lists the commands and flags`
}

export const answerTooLarge = (url: string, limit: number): SvcError =>
  svcError('ANSWER_TOO_LARGE', `the answer has more than ${limit} characters`, {
    where: url,
    hint: 'Check the address: this is not an svc server',
  })

export const pipeMissing = (spoken: string): SvcError =>
  svcError('PIPE_MISSING', `no loaded plugin can serve ${spoken} over standard input and output`, {
    hint: 'In "plugins", remove the plugin that replaces "@svc/plugin-mcp-server", or use HTTP: svc mcp serve --port 8081',
  })

/** `svc serve --tools` without an MCP server. */
export const toolsUnserved = (): SvcError =>
  svcError('COMMAND_LINE_INVALID', '--tools selects the tools of the MCP server, but the MCP server is off', {
    where: '--tools',
    hint: 'Add --mcp, or set mcp.server.enabled to true',
  })

/** Codes of errors in the command line itself. */
const USAGE = ['CONSENT_MISSING', 'COMMAND_LINE_INVALID']

/** Whether a code means a wrong command line: exit code 2. */
export const isUsage = (code: string | undefined): boolean => code !== undefined && USAGE.includes(code)

export const onlyInProcess = (plugin: string, why: string): SvcError =>
  svcError('NOT_ISOLABLE', `cannot run in its own process: ${why}`, {
    plugin,
    hint: `If you trust its code, write { use: "${plugin}", isolation: "in-process" } into "plugins", or install it with --trust`,
  })

/** A trial start that gave no sign of life. */
export const trialHung = (ms: number): SvcError =>
  svcError('SETUP_TIMEOUT', `the trial start gave no sign of life for ${ms / 1000} s: a setup blocks its process`, {
    hint: 'Fix the setup of the plugin that runs with --isolation in-process, or install it without --trust',
  })

/** A trial start whose process ended. */
export const trialEnded = (how: string): SvcError =>
  svcError('SETUP_FAILED', `the trial start ended its process (${how})`, {
    hint: 'A plugin that runs in-process ended the process during its setup. Fix it, or install it without --trust',
  })

/** A command in its own process has none of the rights of the user, unless a person has accepted single requests. */
export const serverNotPermitted = (plugin: string, id: string): SvcError =>
  svcError(
    'COMMAND_ISOLATED',
    `the command "${id.replaceAll(':', ' ')}" sends requests to a server, for which an isolated command needs a permission`,
    {
      plugin,
      hint: 'List its requests in the package.json: "svc": { "permissions": { "server": ["GET /api/v1/tools"] } }. Or install the plugin with --isolation in-process --trust',
    }
  )

export const requestNotPermitted = (plugin: string, request: string): SvcError =>
  svcError('NOT_PERMITTED', `sends ${JSON.stringify(request.slice(0, 200))} to the server, but has no permission for it`, {
    plugin,
    details: { request: request.slice(0, 200) },
    hint: 'To allow it, write "svc": { "permissions": { "server": ["<method> <path>"] } } in the package.json of the plugin, and install the plugin again',
  })

/** The server ended, or another one started, between two requests of a command. */
export const serverGone = (plugin: string): SvcError =>
  svcError('SERVER_NONE', 'no server runs any more', { plugin, hint: 'Start it with `svc serve`, then run the command again' })

export const notStartedYet = (): SvcError => svcError('UNAVAILABLE', 'the server is starting')

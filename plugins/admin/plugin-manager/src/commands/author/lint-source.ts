import { readdirSync, readFileSync, realpathSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { matchesPattern } from '@svc/core'
import { withImports } from '@svc/core/config'
import { matchesHost } from '@svc/runtime/isolation'
import type { LintFinding, LintedPackage } from './plugin-folder.ts'

/** A line of source, without comments. */
interface Line {
  readonly where: string
  readonly code: string
}

const ASIDE = new Set(['node_modules', 'dist', 'test', 'tests', 'coverage'])
const CODE = /(?<!\.d)\.[mc]?[jt]s$/

/**
 * Compares the source with the manifest: svc would refuse an isolated plugin what the manifest does not declare. Only warnings,
 * because reading the source is no proof.
 */
export function sourceFindings({ folder, info }: LintedPackage): LintFinding[] {
  if (info === undefined || info.manifest.runtime !== undefined) return []
  const { env = [], network = [], write = [] } = info.manifest.permissions ?? {}
  const root = realpathSync(folder)
  const files = withoutBrowserScripts(filesBelow(root), root)
  const lines = files.flatMap(file => linesOf(file, relative(root, file)))
  return once([
    ...lines.flatMap(line =>
      variablesIn(line)
        .filter(name => !env.some(item => matchesPattern(item, name)))
        .map(name => variable(name, line))
    ),
    ...lines.flatMap(line =>
      hostsIn(line)
        .filter(host => !matchesHost(network, host))
        .map(host => hostOf(host, line))
    ),
    ...(network.length > 0 ? [] : lines.filter(({ code }) => NETWORK.test(code)).map(unnamed)),
    ...(write.length > 0 ? [] : lines.flatMap(line => writesIn(line).map(name => writes(name, line)))),
    ...lines.flatMap(line => CLOSED_NETWORK.filter(({ found }) => found.test(line.code)).map(item => closed(item, line))),
    ...lines.filter(({ code }) => PROCESS.test(code)).map(starts),
  ])
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap(item => {
    if (ASIDE.has(item.name) || item.name.startsWith('.')) return []
    const path = join(folder, item.name)
    return item.isDirectory() ? filesBelow(path) : CODE.test(item.name) ? [path] : []
  })
}

/** Folders whose scripts a page loads. */
const BROWSER_FOLDER = /(^|[/\\])(public|static|assets|browser)[/\\]/
const BROWSER_CODE = /\b(document|window|localStorage|customElements|EventSource)\./
/** An import of a package, or a global of Node. */
const NODE_CODE =
  /\b(from|import|require)\s*\(?\s*['"`](?!\.{0,2}\/|https?:)|\bprocess\.|\bmodule\.exports\b|\bglobalThis\.process\b/

/**
 * Leaves out scripts that a route serves to browsers: they are in such a folder or use the page, import no package, and no
 * module of the plugin imports them. The browser decides what they reach.
 */
function withoutBrowserScripts(files: readonly string[], root: string): readonly string[] {
  const isForBrowser = (file: string) => {
    const code = withoutComments(readFileSync(file, 'utf8'))
    const isServed = BROWSER_FOLDER.test(file.slice(root.length + sep.length)) || BROWSER_CODE.test(code)
    return isServed && !NODE_CODE.test(code)
  }
  const scripts = new Set(files.filter(isForBrowser))
  if (scripts.size === 0) return files
  const imported = new Set(files.filter(file => !scripts.has(file)).flatMap(withImports))
  return files.filter(file => !scripts.has(file) || imported.has(file))
}

/** Removes comments, keeps texts and line numbers. */
const COMMENT = /(['"`])(?:\\[^]|(?!\1)[^])*?\1|\/\/.*|\/\*[^]*?\*\//g

function linesOf(file: string, name: string): Line[] {
  return withoutComments(readFileSync(file, 'utf8'))
    .split('\n')
    .map((code, at) => ({ where: `${name}:${at + 1}`, code }))
}

const withoutComments = (text: string) =>
  text.replaceAll(COMMENT, (found, quote: string | undefined) => (quote === undefined ? found.replaceAll(/[^\n]/g, '') : found))

const variablesIn = ({ code }: Line): string[] => [
  ...[...code.matchAll(/process\.env(?:\.(\w+)|\[['"](\w+)['"]\])/g)].map(([, dot, bracket]) => dot ?? bracket!),
  ...[...code.matchAll(/\{([^}]*)\}\s*=\s*process\.env\b/g)].flatMap(([, names = '']) =>
    names.split(',').flatMap(part => /^\s*(\w+)/.exec(part)?.[1] ?? [])
  ),
]

const hostsIn = ({ code }: Line): string[] =>
  [...code.matchAll(/['"`]https?:\/\/([\w.-]+(?::\d+)?)/g)].map(([, host = '']) => host).filter(host => !NO_HOST.test(host))

/** Hosts in texts that the code does not connect to: examples, localhost, vocabularies. */
const NO_HOST = /^(localhost|127\.0\.0\.1|json-schema\.org|www\.w3\.org)(:\d+)?$|(^|\.)example(\.\w+)?$/

const NETWORK = /(?<![\w.])fetch\(|from ['"]node:(https?|http2|net|tls|dgram)['"]/
/** Ways of the network that the process sandbox does not open, whatever the manifest declares. */
const CLOSED_NETWORK = [
  { found: /from ['"]node:dgram['"]/, what: 'sends datagrams (UDP)', hint: 'use TCP' },
  {
    found: /\b(dns|dnsPromises|resolver)\.(promises\.)?(reverse|resolve(6|Any|Caa|Cname|Mx|Naptr|Ns|Ptr|Soa|Srv|Txt))\(/,
    what: 'asks a name server for other records than addresses',
    hint: 'use dns.lookup, and take hosts from the configuration instead of an SRV record',
  },
  {
    found: /\bcreateServer\(/,
    what: 'opens a server',
    hint: 'add a route instead (slot "routes"); inside the sandbox only the plugin itself reaches such a server',
  },
] as const

const PROCESS = /from ['"]node:(child_process|worker_threads|cluster)['"]/
const WRITES =
  /\b(writeFile|writeFileSync|appendFile|appendFileSync|createWriteStream|mkdir|mkdirSync|rm|rmSync|unlink|unlinkSync|rename|renameSync|copyFile|cp|open|openSync)\b/g

const writesIn = ({ code }: Line): string[] =>
  /from ['"]node:fs(\/promises)?['"]/.test(code) ? [...code.matchAll(WRITES)].map(([name]) => name) : []

const warning = (code: string, message: string, hint: string, { where }: Line): LintFinding => ({
  level: 'warning',
  code,
  message,
  hint,
  where,
})

const variable = (name: string, line: Line) =>
  warning(
    'ENV_UNDECLARED',
    `it reads the variable ${name}, which its manifest does not declare`,
    `Add it: "permissions": { "env": ["${name}"] }`,
    line
  )

const hostOf = (host: string, line: Line) =>
  warning(
    'NETWORK_UNDECLARED',
    `it names the host ${host}, which its manifest does not declare`,
    `Add it: "permissions": { "network": ["${host}"] }`,
    line
  )

const unnamed = (line: Line) =>
  warning(
    'NETWORK_UNDECLARED',
    'it uses the network, and its manifest declares no host',
    'Name the hosts: "permissions": { "network": ["api.example.org"] }',
    line
  )

const writes = (name: string, line: Line) =>
  warning(
    'WRITE_UNDECLARED',
    `it imports ${name} of node:fs, and its manifest declares no path to write`,
    'Name the paths: "permissions": { "write": ["…"] }',
    line
  )

const closed = ({ what, hint }: (typeof CLOSED_NETWORK)[number], line: Line) =>
  warning('NETWORK_CLOSED', `it ${what}, which does not work in a process of its own`, hint, line)

const starts = (line: Line) =>
  warning(
    'PROCESS_STARTED',
    'it starts processes or threads, which an isolated plugin cannot do',
    'Remove them, or document in the README that it needs `in-process`',
    line
  )

/** Removes duplicates; the first occurrence stays. */
const once = (findings: readonly LintFinding[]) =>
  findings.filter((finding, at) => findings.findIndex(other => other.message === finding.message) === at)

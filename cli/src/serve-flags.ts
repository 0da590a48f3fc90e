import type { ConfigTree } from '@svc/core'

// An `import` of node:util loads all its lazy exports, which would delay every start.
const { parseArgs } = process.getBuiltinModule('node:util')

/** One option of `svc serve` as data. The oclif flag, the fast parser and the configuration key derive from it. */
export interface ServeFlag {
  readonly type: 'integer' | 'text' | 'switch'
  readonly summary: string
  /** The configuration that the option sets. */
  readonly sets?: (value: never) => ConfigTree
  /** Placeholder in the help: `<file>`. */
  readonly value?: string
  readonly char?: 'c' | 'p'
}

const words = (text: string) =>
  text
    .split(',')
    .map(word => word.trim())
    .filter(word => word !== '')

/** The options of `svc serve`. */
export const SERVE_FLAGS = {
  port: {
    type: 'integer',
    char: 'p',
    value: 'int',
    summary: 'Port to listen on; 0 uses a free port',
    sets: (port: number) => ({ server: { port } }),
  },
  profile: { type: 'text', value: 'name', summary: 'Initial profile', sets: (profile: string) => ({ selection: { profile } }) },
  mode: { type: 'text', value: 'mode', summary: 'Initial mode', sets: (mode: string) => ({ selection: { mode } }) },
  config: { type: 'text', char: 'c', value: 'file', summary: "Configuration file instead of the project's svc.config.*" },
  debug: { type: 'switch', summary: 'Log at level debug', sets: () => ({ log: { level: 'debug' } }) },
  workers: {
    type: 'integer',
    value: 'int',
    summary: 'Number of worker processes',
    sets: (workers: number) => ({ server: { workers } }),
  },
  'ssl-cert': {
    type: 'text',
    value: 'file',
    summary: 'Certificate file; enables TLS',
    sets: (cert: string) => ({ server: { ssl: { enabled: true, cert } } }),
  },
  'ssl-key': {
    type: 'text',
    value: 'file',
    summary: 'Key file of the certificate',
    sets: (key: string) => ({ server: { ssl: { enabled: true, key } } }),
  },
  mcp: { type: 'switch', summary: 'Serve the tools over MCP too', sets: () => ({ mcp: { server: { enabled: true } } }) },
  tools: {
    type: 'text',
    value: 'names',
    summary: 'Tools for MCP clients, separated by commas',
    sets: (names: string) => ({ mcp: { server: { tools: words(names) } } }),
  },
  watch: { type: 'switch', summary: 'Reload when configuration, profiles or linked plugins change' },
  json: { type: 'switch', summary: 'Print one JSON line for each event to the standard output' },
} as const satisfies Record<string, ServeFlag>

export type ServeFlagName = keyof typeof SERVE_FLAGS

/** The options of `svc mcp serve`. */
export const MCP_SERVE_FLAGS = {
  port: { ...SERVE_FLAGS.port, summary: 'Port to listen on (default: mcp.server.port, 8081); 0 uses a free port' },
  stdio: {
    type: 'switch',
    summary: 'Serve one client over standard input and output instead of a port; log to the standard error stream',
  },
  tools: SERVE_FLAGS.tools,
  mode: SERVE_FLAGS.mode,
  config: SERVE_FLAGS.config,
  debug: SERVE_FLAGS.debug,
  workers: SERVE_FLAGS.workers,
  'ssl-cert': SERVE_FLAGS['ssl-cert'],
  'ssl-key': SERVE_FLAGS['ssl-key'],
  watch: SERVE_FLAGS.watch,
  json: SERVE_FLAGS.json,
} as const satisfies Record<string, ServeFlag>

/** Options that need a port and exclude `--stdio`. */
export const OF_PORTS = ['port', 'workers', 'ssl-cert', 'ssl-key', 'watch'] as const

/** The given options of `svc serve` and `svc mcp serve`. */
export type ServeOptions = { readonly [name in ServeFlagName | keyof typeof MCP_SERVE_FLAGS]?: string | number | boolean } & {
  /** `mcp`: only the tool server. */
  readonly surface?: 'mcp'
  /** Folder of a plugin to load from its source: `svc plugins dev`. */
  readonly linked?: string
  /** How that plugin runs. Default: in the process of svc. */
  readonly linkedIsolation?: 'process' | 'in-process'
}

type FlagTable = Readonly<Record<string, ServeFlag>>
const FLAGS: FlagTable = SERVE_FLAGS

/** The options as a layer of configuration. */
export function flagsLayer(options: ServeOptions): ConfigTree {
  const trees = Object.entries(options).map(([name, value]) => treeOf(FLAGS[name]?.sets, value))
  const { linked: use, linkedIsolation: isolation } = options
  return trees.reduce(join, use === undefined ? {} : { plugins: [{ use, ...(isolation === undefined ? {} : { isolation }) }] })
}

// Each function takes the type that the table declares, and the parser reads values by the same table.
const treeOf = (sets: ServeFlag['sets'], value: unknown): ConfigTree =>
  sets === undefined || value === undefined || value === false ? {} : sets(value as never)

/** Merges a configuration tree into another. */
export function join(into: ConfigTree, from: ConfigTree): ConfigTree {
  for (const [key, value] of Object.entries(from)) {
    const there = into[key]
    into[key] = isObject(there) && isObject(value) ? join(there, value) : value
  }
  return into
}

const isObject = (value: unknown): value is ConfigTree => typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * Parses a plain command line of `svc serve` or `svc mcp serve`. Returns undefined if in doubt: oclif then parses it with the
 * same tables and reports errors.
 */
export function parseServe([first, second, ...rest]: readonly string[]): ServeOptions | undefined {
  if (first === 'serve') return parsePlain(second === undefined ? [] : [second, ...rest], FLAGS)
  const options = first === 'mcp' && second === 'serve' ? parsePlain(rest, MCP_SERVE_FLAGS) : undefined
  const isDoubtful = options?.stdio !== undefined && OF_PORTS.some(name => options[name] !== undefined)
  return options && !isDoubtful ? { ...options, surface: 'mcp' } : undefined
}

function parsePlain(args: string[], flags: FlagTable): ServeOptions | undefined {
  try {
    const options = Object.fromEntries(Object.entries(flags).map(([name, flag]) => [name, plainOption(flag)]))
    const { values } = parseArgs({ args, options, strict: true, allowPositionals: false })
    const read = Object.entries(values).map(([name, value]) => [name, flags[name]?.type === 'integer' ? integerOf(value) : value])
    return read.some(([, value]) => value === undefined || value === '') ? undefined : (Object.fromEntries(read) as ServeOptions)
  } catch {
    return undefined
  }
}

const plainOption = (flag: ServeFlag) => ({
  type: flag.type === 'switch' ? ('boolean' as const) : ('string' as const),
  ...(flag.char ? { short: flag.char } : {}),
})

const integerOf = (value: unknown) => (/^-?\d+$/.test(String(value)) ? Number(value) : undefined)

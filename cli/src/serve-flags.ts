import type { ConfigTree } from '@svc/core'

// An `import` of node:util reads all its names, and so loads what they hide: here that would delay every start.
const { parseArgs } = process.getBuiltinModule('node:util')

/** The variable that tells a worker which ones died before it. Not of the form SVC_A__B, so no configuration. */
export const DEAD_WORKERS = 'SVC_DEAD_WORKERS'

/** One option of `svc serve`, as data: oclif's flag, the quick way in and the configuration key come from it. */
export interface ServeFlag {
  readonly type: 'integer' | 'text' | 'switch'
  readonly summary: string
  /** What it writes into the configuration. */
  readonly sets?: (value: never) => ConfigTree
  /** For the help: `<file>`. */
  readonly value?: string
  readonly char?: 'c' | 'p'
}

const words = (text: string) =>
  text
    .split(',')
    .map(word => word.trim())
    .filter(word => word !== '')

/** The options of `svc serve`: the documented ones, and where the configuration is. */
export const SERVE_FLAGS = {
  port: {
    type: 'integer',
    char: 'p',
    value: 'int',
    summary: 'Port to listen on; 0 takes a free one',
    sets: (port: number) => ({ server: { port } }),
  },
  profile: { type: 'text', value: 'name', summary: 'Profile at start', sets: (profile: string) => ({ selection: { profile } }) },
  mode: { type: 'text', value: 'mode', summary: 'Mode of working at start', sets: (mode: string) => ({ selection: { mode } }) },
  config: { type: 'text', char: 'c', value: 'file', summary: "Configuration file, in place of the project's svc.config.*" },
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
    summary: 'Certificate: serve TLS',
    sets: (cert: string) => ({ server: { ssl: { enabled: true, cert } } }),
  },
  'ssl-key': {
    type: 'text',
    value: 'file',
    summary: "The certificate's key",
    sets: (key: string) => ({ server: { ssl: { enabled: true, key } } }),
  },
  mcp: { type: 'switch', summary: 'Serve the tools over MCP as well', sets: () => ({ mcp: { server: { enabled: true } } }) },
  tools: {
    type: 'text',
    value: 'names',
    summary: 'Tools that MCP clients see, by comma',
    sets: (names: string) => ({ mcp: { server: { tools: words(names) } } }),
  },
  watch: { type: 'switch', summary: 'Reload when configuration, profiles or linked plugins change' },
  json: { type: 'switch', summary: 'One JSON line an event on the standard output' },
} as const satisfies Record<string, ServeFlag>

export type ServeFlagName = keyof typeof SERVE_FLAGS

/** The options of `svc mcp serve`. */
export const MCP_SERVE_FLAGS = {
  port: { ...SERVE_FLAGS.port, summary: 'Port to listen on (default: mcp.server.port, 8081); 0 takes a free one' },
  stdio: {
    type: 'switch',
    summary: 'Serve one client over standard input and output, on no port; the log goes to the standard error stream',
  },
  tools: SERVE_FLAGS.tools,
  config: SERVE_FLAGS.config,
  debug: SERVE_FLAGS.debug,
  workers: SERVE_FLAGS.workers,
  'ssl-cert': SERVE_FLAGS['ssl-cert'],
  'ssl-key': SERVE_FLAGS['ssl-key'],
  watch: SERVE_FLAGS.watch,
  json: SERVE_FLAGS.json,
} as const satisfies Record<string, ServeFlag>

/** Options that go with a port, and not with `--stdio`. */
export const OF_PORTS = ['port', 'workers', 'ssl-cert', 'ssl-key', 'watch'] as const

/** Options of `svc serve` and `svc mcp serve` as they were given. */
export type ServeOptions = { readonly [name in ServeFlagName | keyof typeof MCP_SERVE_FLAGS]?: string | number | boolean } & {
  /** `mcp`: nothing but the tool server. */
  readonly surface?: 'mcp'
  /** A plugin's folder that is loaded besides, from its source: `svc plugins dev`. */
  readonly linked?: string
}

type FlagTable = Readonly<Record<string, ServeFlag>>
const FLAGS: FlagTable = SERVE_FLAGS

/** The layer of configuration that these options are. */
export function flagsLayer(options: ServeOptions): ConfigTree {
  const trees = Object.entries(options).map(([name, value]) => treeOf(FLAGS[name]?.sets, value))
  return trees.reduce(join, options.linked === undefined ? {} : { plugins: [{ use: options.linked }] })
}

// The table's own literal says which value each function takes; what arrives here was read by that very table.
const treeOf = (sets: ServeFlag['sets'], value: unknown): ConfigTree =>
  sets === undefined || value === undefined || value === false ? {} : sets(value as never)

/** Merges a tree of configuration into another. */
export function join(into: ConfigTree, from: ConfigTree): ConfigTree {
  for (const [key, value] of Object.entries(from)) {
    const there = into[key]
    into[key] = isObject(there) && isObject(value) ? join(there, value) : value
  }
  return into
}

const isObject = (value: unknown): value is ConfigTree => typeof value === 'object' && value !== null && !Array.isArray(value)

/** Reads a plain line of `svc serve` or `svc mcp serve`; `undefined` where anything is doubtful: oclif, which has the same tables, then says what. */
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

/** Serves until it is told to end; then nothing that a worker left may hold this process. */
export async function runServe(options: ServeOptions): Promise<never> {
  if (options.stdio === true) process.exit(await (await import('./serve-stdio.ts')).serveStdio(options))
  process.exit(await (await import('./serve.ts')).serve(options))
}

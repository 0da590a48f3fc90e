// Prints statistics of the shipped sources: `npm run structure [-- --turn] [folder]`.
// `folder` is another checkout, for example of an older commit. The default is this one.
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import process from 'node:process'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { parseAst } from 'rolldown/parseAst'

const SHIPPED = ['core', 'libs', 'plugins', 'cli', 'client']
/** Folders without shipped sources. */
const LEFT_OUT = new Set(['node_modules', 'dist', 'test', 'templates', 'assets', 'fixtures'])

interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
}

/** Statistics of one file. */
interface Source {
  readonly file: string
  readonly lines: number
  /** Lines of each function. */
  readonly functions: readonly number[]
  readonly exported: number
  /** Files that it imports by a relative path, types included. */
  readonly imports: ReadonlySet<string>
}

function sourcesBelow(root: string, folder: string): string[] {
  if (!existsSync(join(root, folder))) return []
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap(item => {
    const path = join(folder, item.name)
    if (item.isDirectory()) return LEFT_OUT.has(item.name) ? [] : sourcesBelow(root, path)
    return /\.m?ts$/.test(item.name) && !/\.(d|spec|test-d)\.ts$/.test(item.name) ? [path] : []
  })
}

const FUNCTIONS = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'])
const HOLDERS = new Set(['VariableDeclarator', 'MethodDefinition', 'Property', 'PropertyDefinition'])
const IMPORTS = new Set([
  'ImportDeclaration',
  'ExportNamedDeclaration',
  'ExportAllDeclaration',
  'ImportExpression',
  'TSImportType',
])

/** Calls `visit` for a node of the syntax tree and all nodes below it. */
function walk(node: unknown, visit: (node: Node) => void): void {
  if (typeof node !== 'object' || node === null) return
  if (typeof (node as Partial<Node>).type === 'string') visit(node as Node)
  for (const child of Object.values(node)) walk(child, visit)
}

function read(root: string, file: string): Source {
  const code = readFileSync(join(root, file), 'utf8')
  const program = parseAst(code, { lang: 'ts' }, file)
  const functions: number[] = []
  const imports = new Set<string>()
  let exported = 0
  walk(program.body, node => {
    if (isNamedFunction(node)) functions.push(code.slice(node.start, node.end).split('\n').length)
    if (node.type === 'ExportNamedDeclaration') exported += namesIn(node)
    const { source } = node as { source?: { value?: unknown } | null }
    const from = IMPORTS.has(node.type) ? source?.value : undefined
    if (typeof from === 'string' && from.startsWith('.')) imports.add(join(dirname(file), from))
  })
  return { file, lines: code.trimEnd().split('\n').length, functions, exported, imports }
}

/** A function, method or constant with a function. Anonymous callbacks count as part of their parent. */
function isNamedFunction(node: Node): boolean {
  const { init, value } = node as { init?: Node | null; value?: unknown }
  const inner = HOLDERS.has(node.type) ? (init ?? value) : node
  return (
    typeof inner === 'object' &&
    inner !== null &&
    FUNCTIONS.has((inner as Node).type) &&
    (inner !== node || node.type === 'FunctionDeclaration')
  )
}

function namesIn(node: Node): number {
  const { declaration, specifiers } = node as { declaration?: { declarations?: unknown[] } | null; specifiers?: unknown[] }
  return declaration ? (declaration.declarations?.length ?? 1) : (specifiers?.length ?? 0)
}

/** Groups of files that import each other in a cycle (Tarjan's strongly connected components). */
function cyclesIn(sources: readonly Source[]): string[][] {
  const byFile = new Map(sources.map(source => [source.file, source]))
  const low = new Map<string, number>()
  const stack: string[] = []
  const found: string[][] = []
  const visit = (file: string): number => {
    const index = low.size
    let lowest = index
    low.set(file, index)
    stack.push(file)
    for (const next of byFile.get(file)!.imports) {
      if (!byFile.has(next)) continue
      if (!low.has(next)) lowest = Math.min(lowest, visit(next))
      else if (stack.includes(next)) lowest = Math.min(lowest, low.get(next)!)
    }
    low.set(file, lowest)
    if (lowest === index) {
      const group = stack.splice(stack.indexOf(file))
      if (group.length > 1) found.push(group.sort())
    }
    return lowest
  }
  for (const { file } of sources) if (!low.has(file)) visit(file)
  return found
}

function median(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? 0
}

const sum = (numbers: readonly number[]) => numbers.reduce((all, item) => all + item, 0)

function report(root: string): void {
  const sources = SHIPPED.flatMap(folder => sourcesBelow(root, folder)).map(file => read(root, file))
  const lines = sources.map(source => source.lines)
  const functions = sources.flatMap(source => source.functions)
  const importers = new Map<string, number>()
  for (const file of sources.flatMap(source => [...source.imports])) importers.set(file, (importers.get(file) ?? 0) + 1)
  const single = sources.filter(source => importers.get(source.file) === 1)
  const cycles = cyclesIn(sources)
  const rows: readonly (readonly [string, number | string])[] = [
    ['source files', sources.length],
    ['lines', sum(lines)],
    ['lines per file, mean', (sum(lines) / sources.length).toFixed(1)],
    ['lines per file, median', median(lines)],
    ['files over 400 lines', lines.filter(line => line > 400).length],
    ['functions', functions.length],
    ['lines per function, median', median(functions)],
    ['exported names per 1,000 lines', ((sum(sources.map(source => source.exported)) * 1000) / sum(lines)).toFixed(1)],
    ['files with a single importer', single.length],
    ['of these under 60 lines', single.filter(source => source.lines < 60).length],
    ['import cycles, types included', cycles.length],
  ]
  for (const [name, value] of rows) console.log(`${name.padEnd(34)}${value}`)
  for (const group of cycles) console.log(`  cycle: ${group.join(', ')}`)
}

// --- files that a chat turn enters ---

/** Counts function calls in a process of the server, and reports on a socket which scripts ran since the last request. */
const PROBE = `
import { Session } from 'node:inspector'
import { createServer } from 'node:net'
const session = new Session()
session.connect()
session.post('Profiler.enable')
session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
const probe = createServer(socket => session.post('Profiler.takePreciseCoverage', (error, answer) =>
  socket.end(error ? '[]' : JSON.stringify(answer.result
    .filter(({ functions }) => functions.some(({ functionName, ranges }) => ranges[0].count > 0))
    .map(({ url }) => url)))))
probe.on('error', () => {})
probe.listen(process.env.STRUCTURE_PROBES + '/' + process.pid + '.sock')
probe.unref()
`

const CHAT = JSON.stringify({ message: 'Say hello.', provider: 'local' })
const START_MS = 60_000
/** Only files that each of these turns enters belong to a turn. Heartbeats and timers of the server run in some of them. */
const TURNS = 5

/** The files with a function that ran during each of several chat turns, after two turns that warm up the server. */
async function filesOfTurn(root: string): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'structure-'))
  const home = join(folder, 'home')
  const probes = join(folder, 'p')
  await Promise.all([mkdir(home, { mode: 0o700 }), mkdir(probes)])
  await Promise.all([
    writeFile(join(folder, 'probe.mjs'), PROBE),
    writeFile(join(folder, 'svc.config.json'), JSON.stringify({ server: { port: 0, host: '127.0.0.1' } })),
    symlink(join(root, 'node_modules'), join(folder, 'node_modules')),
  ])
  const child = spawn(
    join(root, 'node_modules/.bin/node'),
    [
      '--conditions=svc-source',
      `--import=${pathToFileURL(join(folder, 'probe.mjs')).href}`,
      join(root, 'cli/bin/svc.js'),
      'serve',
    ],
    {
      cwd: folder,
      env: { PATH: process.env.PATH, HOME: home, SVC_HOME: home, SVC_TRUST_CONFIG: '1', STRUCTURE_PROBES: probes },
      stdio: ['ignore', 'pipe', 'pipe'],
    }
  )
  try {
    const port = await portOf(child)
    for (let turn = 0; turn < 2; turn++) await chat(port)
    await enteredIn(probes)
    const turns: Set<string>[] = []
    for (let turn = 0; turn < TURNS; turn++) {
      await chat(port)
      const urls = await enteredIn(probes)
      turns.push(new Set(urls.filter(url => url.startsWith('file:')).map(url => relative(root, fileURLToPath(url)))))
    }
    const files = [...turns[0]!].filter(file => turns.every(turn => turn.has(file)))
    return files.filter(file => SHIPPED.some(item => file.startsWith(`${item}/`))).sort()
  } finally {
    child.removeAllListeners('exit')
    const exit = child.exitCode === null ? once(child, 'exit') : undefined
    child.kill('SIGTERM')
    await exit
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** Reads the port from the log line of a listening server. */
async function portOf(child: ChildProcessByStdio<null, Readable, Readable>): Promise<number> {
  let log = ''
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const take = (chunk: Buffer) => {
    log += chunk.toString()
    const line = log.split('\n').find(item => item.includes('"listening"'))
    const port = /"url":"[^"]*:(\d+)"/.exec(line ?? '')?.[1]
    if (port) resolve(Number(port))
  }
  child.stdout.on('data', take)
  child.stderr.on('data', take)
  child.once('exit', code => reject(new Error(`the server ended with ${code}:\n${log}`)))
  return Promise.race([
    promise,
    wait(START_MS, undefined, { ref: false }).then(() => Promise.reject(new Error(`no start:\n${log}`))),
  ])
}

async function chat(port: number): Promise<void> {
  const headers = { 'content-type': 'application/json' }
  const answer = await fetch(`http://127.0.0.1:${port}/api/v1/chat`, { method: 'POST', headers, body: CHAT })
  const body = await answer.text()
  if (answer.status !== 200) throw new Error(`the chat failed with ${answer.status}: ${body}`)
  // Writes after the response belong to the turn as well.
  await wait(300)
}

/** Queries every process of the server. */
async function enteredIn(probes: string): Promise<string[]> {
  const answers = await Promise.all(readdirSync(probes).map(async name => text(connect(join(probes, name)))))
  return answers.flatMap(answer => JSON.parse(answer) as string[])
}

const { values, positionals } = parseArgs({ options: { turn: { type: 'boolean', default: false } }, allowPositionals: true })
const root = resolve(positionals[0] ?? fileURLToPath(new URL('..', import.meta.url)))
report(root)
if (values.turn) {
  const files = await filesOfTurn(root)
  console.log(`${'files that a chat turn enters'.padEnd(34)}${files.length}`)
  for (const file of files) console.log(`  ${file}`)
}

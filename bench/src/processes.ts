import { type ChildProcess, fork, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { availableParallelism, loadavg, totalmem } from 'node:os'
import { fileURLToPath } from 'node:url'
import { getHeapStatistics } from 'node:v8'

/** A program to measure: its Node arguments. */
export interface Program {
  readonly args: readonly string[]
  readonly cwd?: string
  readonly env?: NodeJS.ProcessEnv
  /** Runs on all cores instead of the measured one. */
  readonly everywhere?: boolean
  /** A server that the measured program calls: runs on a core of its own, or on that of the load if there are only two. */
  readonly beside?: boolean
}

/** Counted before this process is pinned. */
const CORES = availableParallelism()
const canPin = CORES > 1 && spawnSync('taskset', ['--version']).status === 0
/** The measured program runs on one core, everything else on the others. */
const MEASURED = '0'
const LOAD = '1'
const BESIDE = CORES > 2 ? '2' : LOAD

/** Moves this process and its load off the measured core. Returns whether that was possible. */
export function pinLoad(): boolean {
  return canPin && spawnSync('taskset', ['-a', '-c', '-p', LOAD, String(process.pid)]).status === 0
}

/** Starts a program, by default on the measured core. Its output is discarded. */
export function launch({ args, cwd, env = {}, everywhere = false, beside = false }: Program): ChildProcess {
  const cores = everywhere ? `${MEASURED},${LOAD}` : beside ? BESIDE : MEASURED
  const [command, ...first] = canPin ? ['taskset', '-c', cores, process.execPath] : [process.execPath]
  return spawn(command!, [...first, ...args], {
    ...(cwd === undefined ? {} : { cwd }),
    env: { ...process.env, NODE_ENV: 'production', ...env },
    stdio: 'ignore',
  })
}

/** Lets running processes use all cores. They inherit the single core of this one. Without taskset they have all cores anyway. */
export function useAllCores(pids: readonly (number | undefined)[]): void {
  for (const pid of pids) if (canPin) spawnSync('taskset', ['-a', '-c', '-p', `0-${CORES - 1}`, String(pid)])
}

/** A program of `peers` that answers messages one by one. */
export interface PeerProcess<A> {
  ask(message: object): Promise<A>
  end(): Promise<void>
}

/**
 * Starts a program of `peers`. It has all cores, because it has threads and no external load. `svc`: the arguments that start svc, for
 * a program that uses it.
 */
export async function forkPeer<A>(name: string, args: readonly string[], svc: readonly string[] = []): Promise<PeerProcess<A>> {
  const file = fileURLToPath(new URL(`../peers/${name}.js`, import.meta.url))
  const execArgv = svc.filter(word => word.startsWith('--conditions'))
  const child = fork(file, [...args], { execArgv, env: { ...process.env, NODE_ENV: 'production' } })
  useAllCores([child.pid])
  const answer = async () => {
    const over = new AbortController()
    const { signal } = over
    const ended = once(child, 'exit', { signal }).then(() => Promise.reject(new Error(`${name} ended`)))
    try {
      const [message] = (await Promise.race([once(child, 'message', { signal }), ended])) as [A]
      return message
    } finally {
      ended.catch(() => {})
      over.abort()
    }
  }
  await answer()
  return {
    ask(message) {
      child.send(message)
      return answer()
    },
    async end() {
      if (!child.connected) return
      const ended = once(child, 'exit')
      child.disconnect()
      await ended
    },
  }
}

/** Ends a process and waits for its end. */
export async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGTERM')
  const late = setTimeout(() => child.kill('SIGKILL'), 10_000)
  await once(child, 'exit')
  clearTimeout(late)
}

/** A free port. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  await new Promise(resolve => server.close(resolve))
  return typeof address === 'object' && address ? address.port : 0
}

/** A process and its descendants. */
export function family(pid: number): number[] {
  const parents = readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(name => ({ pid: Number(name), parent: parentOf(name) }))
  const grow = (all: number[]): number[] => {
    const more = parents.filter(parent => all.includes(parent.parent) && !all.includes(parent.pid)).map(parent => parent.pid)
    return more.length === 0 ? all : grow([...all, ...more])
  }
  return grow([pid])
}

const parentOf = (pid: string) => Number(read(`/proc/${pid}/stat`).split(') ').at(-1)?.split(' ')[1] ?? 0)

/** Microseconds of processor time of these processes with all threads; NaN if unknown. */
export function cpuOf(pids: readonly number[]): number {
  const threads = pids.flatMap(pid => list(`/proc/${pid}/task`).map(thread => `/proc/${pid}/task/${thread}/schedstat`))
  const sum = threads.reduce((all, file) => all + Number(read(file).split(' ')[0] || 0), 0)
  return sum === 0 ? Number.NaN : sum / 1000
}

/** Resident memory in MiB. */
export const residentOf = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(read(`/proc/${pid}/status`))?.[1] ?? Number.NaN) / 1024

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return '' // a thread or process can end between listing and reading
  }
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

const MIB = 1024 ** 2
/** Load of the machine before a run, above which other programs disturb the results. */
const QUIET = 0.5

/**
 * Describes what the results of a run depend on: cores, caches of the processor, memory, and the limits that V8 derives from it. The ratios to a baseline
 * differ between machines that differ in these.
 */
export function machineLines(): string[] {
  const caches = [2, 3].map(
    level => `L${level} ${read(`/sys/devices/system/cpu/cpu0/cache/index${level}/size`).trim() || 'unknown'}`
  )
  const memory = Math.min(totalmem(), process.constrainedMemory()) / MIB
  const heap = getHeapStatistics().heap_size_limit / MIB
  const upstream = CORES > 2 ? 'a core of its own' : 'the core of the load'
  const [load = 0] = loadavg()
  return [
    `bench: ${CORES} cores, ${caches.join(', ')}, ${Math.round(memory)} MiB memory, heap limit ${Math.round(heap)} MiB, Node ${process.versions.node}; upstreams run on ${upstream}`,
    ...(load > QUIET
      ? [`bench: the load of the machine is ${load.toFixed(1)} before the run: compare processor times, not rates`]
      : []),
  ]
}

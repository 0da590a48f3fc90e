import type { ChildProcess } from 'node:child_process'
import { setTimeout as wait } from 'node:timers/promises'
import { connect, requestFor } from './client.ts'
import { cpuOf, end, family, launch, type Program } from './processes.ts'

/** A server that runs on the measured core. */
export interface Server extends AsyncDisposable {
  readonly port: number
  /** Its current processes. The first is the one that was started. */
  readonly pids: readonly number[]
  /** Milliseconds from its start to its first good response. */
  readonly startMs: number
  /** Microseconds of processor time so far. */
  cpu(): number
}

const PATIENCE_MS = 60_000

/** Starts a server and waits for a 200 of `/health` or another path. */
export async function start(program: Program, port: number, path = '/health'): Promise<Server> {
  const began = performance.now()
  const child = launch(program)
  try {
    await untilHealthy(port, path, child, began + PATIENCE_MS)
    const startMs = performance.now() - began
    return {
      port,
      get pids() {
        return family(child.pid!)
      },
      startMs,
      cpu: () => cpuOf(family(child.pid!)),
      [Symbol.asyncDispose]: () => end(child),
    }
  } catch (error) {
    await end(child)
    throw error
  }
}

async function untilHealthy(port: number, path: string, child: ChildProcess, until: number): Promise<void> {
  while (performance.now() < until && child.exitCode === null) {
    if (await isHealthy(port, path)) return
    await wait(1)
  }
  throw new Error(`no good /health came; start it by hand to see why: ${child.spawnargs.join(' ')}`)
}

async function isHealthy(port: number, path: string): Promise<boolean> {
  try {
    const connection = await connect(port)
    const { status } = await connection.ask(requestFor('GET', path), false)
    connection.close()
    return status === 200
  } catch {
    return false
  }
}

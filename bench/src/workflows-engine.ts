import { forkPeer } from './processes.ts'

/** Runs of one kind: how many at once and for how long. `each`: in a sequence, with one commit per step. */
export interface Load {
  readonly kind: 'sequence' | 'parallel' | 'each'
  readonly at: number
  readonly ms: number
}

/** The results of an engine. */
interface Ran {
  readonly stepsPerSecond: number
  /** Microseconds of processor time per step, over all threads. */
  readonly cpu: number
}

/** An engine in a process of its own. */
export interface Engine {
  readonly run: (load: Load) => Promise<Ran>
  /** Stores this number of completed runs. */
  fill(count: number): Promise<void>
  end(): Promise<void>
}

/** Starts an engine of `peers`. `svc`: the arguments that start svc. */
export async function startEngine(name: string, args: readonly string[], svc: readonly string[] = []): Promise<Engine> {
  const engine = await forkPeer<Ran>(name, args, svc)
  return {
    run: load => engine.ask(load),
    fill: async count => void (await engine.ask({ kind: 'fill', count })),
    end: () => engine.end(),
  }
}

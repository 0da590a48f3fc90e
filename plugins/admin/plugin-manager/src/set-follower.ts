import { backoffDelay, type CallContext, codeOf, type HostReport, type Log, Wakeup } from '@svc/core'
import type { NodeBus, Store } from '@svc/core/contracts'
import { follow } from '@svc/storage-kit/follow'
import { plainText } from './errors.ts'
import { hasRevision, readNodeRevision } from './set/node-revision.ts'
import { newestRevision, watchRevisions } from './set/revisions.ts'

/** Compares this often, because a notification of the store can be lost. */
const CHECK_MS = 45_000
/** After a failure. */
const [AGAIN_MS, LONGEST_MS] = [5_000, 5 * 60_000]
/** Another command changes the plugins of this home, or the supervisor is busy. */
const BUSY_MS = 2_000

export interface FollowerOptions {
  readonly store: Store
  /** Names the workers of this server: one of them follows. */
  readonly bus: NodeBus | undefined
  readonly self: Pick<HostReport, 'worker' | 'serverId' | 'clusterId'>
  /** The folder of the lock. */
  readonly home: string
  readonly log: Log
  readonly lasting: CallContext
}

/** Takes over each revision of the plugins of the cluster, and reloads this server. A revision that fails is tried again. */
export class SetFollower {
  readonly #options: FollowerOptions
  readonly #wakeup = new Wakeup()
  readonly #end = new AbortController()
  #running: Promise<unknown> = Promise.resolve()
  #failures = 0
  /** The last logged failure. */
  #logged = ''

  constructor(options: FollowerOptions) {
    this.#options = options
  }

  begin(): void {
    const { store, log, lasting } = this.#options
    const signal = AbortSignal.any([lasting.signal, this.#end.signal])
    const watch = (ctx: CallContext) => watchRevisions(store, () => this.#wakeup.ring(), ctx)
    const what = { what: 'the plugins of the cluster', watch, read: async () => this.#wakeup.ring() }
    void follow(what, { ...lasting, signal }, log)
    this.#running = this.#run(signal)
  }

  /** Resolves when no take-over runs any more. */
  async end(): Promise<void> {
    this.#end.abort()
    await this.#running
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const { rings } = this.#wakeup
      const waitMs = await this.#check().catch((error: unknown) => this.#failed(error))
      await this.#wakeup.after(rings, waitMs, signal)
    }
  }

  /** Returns the delay until the next check. */
  async #check(): Promise<number> {
    const { store, self, home, lasting } = this.#options
    const revisions = { store, cluster: self.clusterId }
    const newest = await newestRevision(revisions, lasting)
    if (newest === undefined || hasRevision(readNodeRevision(home), newest)) return this.#good()
    if (!(await this.#isLast())) return AGAIN_MS
    // the command line is needed only now
    const { takeOver } = await import('./commands/change/take-over.ts')
    const { result, revision, before, problems } = await takeOver(revisions, lasting, process.ppid)
    if (result === 'current' || !revision) return this.#good()
    const facts = { revision: revision.revision, by: revision.by, at: revision.at, before, plugins: revision.plugins }
    if (result === 'taken') {
      this.#options.log.info(facts, `took over revision ${revision.revision} of the plugins of the cluster`)
      return this.#good()
    }
    const [problem] = problems
    const text = `${problem?.plugin === undefined ? '' : `${problem.plugin} `}${plainText(problem)}`
    this.#log(
      `${revision.sha256} ${problem?.code}`,
      { ...facts, code: problem?.code, hint: problem?.hint },
      `cannot take over revision ${revision.revision} of the plugins of the cluster, so the former ones stay in effect: ${text}`
    )
    return this.#again()
  }

  #failed(error: unknown): number {
    if (this.#options.lasting.signal.aborted) return 0
    if (/^(PLUGIN_SET_BUSY|SERVER_SILENT)$/.test(codeOf(error) ?? '')) return BUSY_MS
    this.#log(String(codeOf(error)), { err: error }, 'failed to compare the plugins with those of the cluster')
    return this.#again()
  }

  #good(): number {
    this.#failures = 0
    this.#logged = ''
    return CHECK_MS + Math.random() * AGAIN_MS
  }

  #again(): number {
    this.#failures += 1
    return Math.max(AGAIN_MS, backoffDelay(this.#failures, AGAIN_MS, LONGEST_MS))
  }

  /** Once for each cause. */
  #log(cause: string, facts: object, message: string): void {
    if (this.#logged !== cause) this.#options.log.error(facts, message)
    this.#logged = cause
  }

  /** Whether this is the newest worker of its server, which follows for all: older ones can be draining. */
  async #isLast(): Promise<boolean> {
    const { bus, self, lasting } = this.#options
    const prefix = `${self.serverId}.`
    const numberIn = (worker: string) => Number(worker.slice(prefix.length))
    const members = (await bus?.members(lasting)) ?? []
    return !members.some(({ worker }) => worker.startsWith(prefix) && numberIn(worker) > numberIn(self.worker))
  }
}

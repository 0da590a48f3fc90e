import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf, type CallContext } from '@svc/core'
import type { Postgres, SqlResult, SqlValue } from '@svc/core/contracts'
import { Batches } from '@svc/storage-kit/batches'
import { type OpenBoss, RUNS_QUEUE, storeErrorBelow } from './boss.ts'
import { ANY_NODE, type Attempt, type Job, type NewJob, noGroup, tierOf } from './rows.ts'

interface JobsOptions extends OpenBoss {
  readonly postgres: Pick<Postgres, 'runApart'>
  readonly lasting: CallContext
}

const [RETRY_MS, FIRST_MS, LONGEST_MS] = [5_000, 20, 500]
const RETRIED = new Set(['STORE_UNAVAILABLE', 'STORE_UNSURE'])
const PAGE = 1_000
/** Limits of groups that this worker knows. A group with another limit runs one run at a time until it is known. */
const MOST_TIERS = 200
/** How often a job is placed again that another worker takes at the same moment. */
const MOST_TIMES = 5
/** A job that its worker claims is due after this time, so that no other worker takes it before, and one does if this worker dies. */
const CLAIM_S = 10

/**
 * The jobs of pg-boss: at most one that waits and one that is active for each run. What waits while a statement is on its way shares the
 * next one. The tables are read directly where pg-boss has no function for it.
 */
export class Jobs {
  readonly #options: JobsOptions
  readonly #tiers = new Map<string, number>()
  readonly #inserting: Batches<NewJob, boolean>
  readonly #claiming: Batches<NewJob, Attempt | 'busy' | 'known'>
  readonly #removing: Batches<Attempt, undefined>
  readonly #touching: Batches<Attempt, undefined>

  constructor(options: JobsOptions) {
    this.#options = options
    const { boss } = options
    this.#inserting = new Batches(jobs => this.#insert(jobs))
    this.#claiming = new Batches(jobs => this.#insertAndClaim(jobs))
    this.#removing = new Batches(async attempts => {
      await this.#again(() => boss.deleteJob(RUNS_QUEUE, [...attempts]))
      return attempts.map(() => undefined)
    })
    this.#touching = new Batches(async attempts => {
      await this.#again(() => boss.touch(RUNS_QUEUE, [...attempts]))
      return attempts.map(() => undefined)
    })
  }

  /** Adds a job. Returns false if one of its run waits already. */
  add(job: NewJob): Promise<boolean> {
    return this.#inserting.add(job)
  }

  /** Adds a job, or replaces the one of its run that waits. */
  async place(job: NewJob): Promise<void> {
    const { data, singletonKey, startAfter, priority = ANY_NODE, group = noGroup(singletonKey) } = job
    for (let times = 0; times < MOST_TIMES; times++) {
      if (await this.add(times === 0 ? job : { ...job, id: crypto.randomUUID() })) return
      const options = { singletonKey, startAfter: startAfter!, priority, group, match: 'all' as const }
      const { updated } = await this.#again(() => this.#options.boss.update(RUNS_QUEUE, data, options))
      if (updated > 0) return
    }
  }

  /**
   * Adds a job and claims it at once. `known`: a job of this run waits already, and nothing was added; `busy`: it waits, because another
   * worker has claimed its run.
   */
  addClaimed(job: NewJob): Promise<Attempt | 'busy' | 'known'> {
    return this.#claiming.add(job)
  }

  /** Claims the next due job of a priority. */
  async next(priority: number): Promise<Job | undefined> {
    const tiers = Object.fromEntries(this.#tiers)
    const { boss } = this.#options
    const range = { minPriority: priority, maxPriority: priority, groupConcurrency: { default: 1, tiers } }
    const [job] = await this.#ask(() => boss.fetch<object>(RUNS_QUEUE, range))
    return job && { id: job.id, retryCount: job.retryCount, data: job.data }
  }

  /** Claims the due job of a run. `undefined`: none is due; `gone`: the queue does not know the run. */
  async ofRun(singletonKey: string): Promise<Job | 'gone' | undefined> {
    const sql = `SELECT id, state < 'active' AND start_after <= now() AS due FROM ${this.#table}
      WHERE name = $1 AND singleton_key = $2 AND state <= 'active' ORDER BY due DESC`
    const [first] = (await this.#sql(sql, [RUNS_QUEUE, singletonKey])).rows
    if (!first) return 'gone'
    return first.due === true ? (await this.#claim([String(first.id)], 'due'))[0] : undefined
  }

  /** Makes the waiting jobs of a run due. Returns whether there are any. */
  async wake(singletonKey: string): Promise<boolean> {
    const options = { singletonKey, startAfter: 0, match: 'all' as const }
    const { updated } = await this.#again(() => this.#options.boss.update(RUNS_QUEUE, undefined, options))
    return updated > 0
  }

  /** The active job of a run. */
  async active(singletonKey: string): Promise<Job | undefined> {
    const sql = `SELECT id, retry_count, data FROM ${this.#table} WHERE name = $1 AND singleton_key = $2 AND state = 'active'`
    const { rows } = await this.#again(() => this.#sql(sql, [RUNS_QUEUE, singletonKey]))
    return rows.map(jobIn)[0]
  }

  /** Deletes a job; nothing, if the attempt is over. */
  remove(attempt: Attempt): Promise<void> {
    return this.#removing.add(attempt)
  }

  touch(attempt: Attempt): Promise<void> {
    return this.#touching.add(attempt)
  }

  /** Gives up attempts: their jobs are due again. */
  async fail(attempts: readonly Attempt[]): Promise<void> {
    if (attempts.length > 0) await this.#again(() => this.#options.boss.fail(RUNS_QUEUE, [...attempts]))
  }

  /** The active jobs of all workers that were not touched for this time. */
  async *untouched(ms: number): AsyncGenerator<readonly Job[], void> {
    const sql = `SELECT id, retry_count, data FROM ${this.#table} WHERE name = $1 AND state = 'active'
      AND heartbeat_on <= now() - $2::float8 * interval '1 millisecond' AND id > $3::uuid ORDER BY id LIMIT ${PAGE}`
    for (let after = '00000000-0000-0000-0000-000000000000'; ; ) {
      const { rows } = await this.#sql(sql, [RUNS_QUEUE, ms, after])
      if (rows.length > 0) yield rows.map(jobIn)
      if (rows.length < PAGE) return
      after = String(rows.at(-1)!.id)
    }
  }

  /** For how many seconds a run is due that workers with these priorities may take; 0 if there is none. Runs with a group can wait. */
  async overdueS(priorities: readonly number[]): Promise<number> {
    const sql = `SELECT coalesce(extract(epoch FROM now() - min(start_after)), 0)::float8 AS s FROM ${this.#table} j WHERE name = $1
      AND state < 'active' AND start_after <= now() AND priority = ANY($2::integer[]) AND group_id IS NULL
      AND NOT EXISTS (SELECT 1 FROM ${this.#table} a WHERE a.name = $1 AND a.state = 'active' AND a.singleton_key = j.singleton_key)`
    const { rows } = await this.#sql(sql, [RUNS_QUEUE, [...priorities]])
    return Number(rows[0]!.s)
  }

  /** How many runs are due that any worker may take, among so many due ones. */
  async countDue(limit: number): Promise<number> {
    const sql = `SELECT count(*)::integer AS n FROM (SELECT priority, group_id, singleton_key FROM ${this.#table}
        WHERE name = $1 AND state IN ('created', 'retry') AND NOT blocked AND start_after <= now() LIMIT $3) j
      WHERE priority = ${ANY_NODE} AND (group_id IS NULL OR group_id = $2 || singleton_key)
        AND NOT EXISTS (SELECT 1 FROM ${this.#table} a WHERE a.name = $1 AND a.state = 'active' AND a.singleton_key = j.singleton_key)`
    const { rows } = await this.#sql(sql, [RUNS_QUEUE, noGroup('').id, limit])
    return Number(rows[0]!.n)
  }

  /** Milliseconds until the next run is due that workers with these priorities may take; 0 if one is. Runs with a group can wait. */
  async nextDueMs(priorities: readonly number[]): Promise<number> {
    const sql = `SELECT (extract(epoch FROM min(start_after) - now()) * 1000)::float8 AS ms FROM ${this.#table}
      WHERE name = $1 AND state < 'active' AND priority = ANY($2::integer[])`
    const { rows } = await this.#sql(sql, [RUNS_QUEUE, [...priorities]])
    const ms = rows[0]?.ms
    return ms === null || ms === undefined ? Number.POSITIVE_INFINITY : Math.max(0, Number(ms))
  }

  /** Lets runs of groups with this limit be fetched. */
  learn(limit: number): void {
    const tier = String(tierOf(limit))
    if (this.#tiers.has(tier)) return
    if (this.#tiers.size >= MOST_TIERS) this.#tiers.delete(this.#tiers.keys().next().value!)
    this.#tiers.set(tier, tierOf(limit))
  }

  get #table(): string {
    return `${this.#options.schema}.job`
  }

  async #insert(jobs: readonly NewJob[]): Promise<boolean[]> {
    const { boss } = this.#options
    const added = new Set(await this.#again(() => boss.insert(RUNS_QUEUE, [...jobs], { returnId: true })))
    return jobs.map(({ id }) => added.has(id))
  }

  async #insertAndClaim(jobs: readonly NewJob[]): Promise<(Attempt | 'busy' | 'known')[]> {
    const added = await this.#insert(jobs.map(job => ({ ...job, startAfter: CLAIM_S })))
    const own = jobs.filter((_, at) => added[at])
    const ids = own.map(({ id }) => id)
    const claimed = new Map((ids.length === 0 ? [] : await this.#claim(ids, 'any')).map(job => [job.id, job]))
    const lost = own.filter(({ id }) => !claimed.has(id))
    await Promise.all(lost.map(({ singletonKey }) => this.wake(singletonKey)))
    return jobs.map(({ id }, at) => (added[at] ? (claimed.get(id) ?? 'busy') : 'known'))
  }

  /** Claims jobs by their ids, as `fetch` of pg-boss does it for the next ones. */
  async #claim(ids: readonly string[], which: 'due' | 'any'): Promise<Job[]> {
    const { schema } = this.#options
    const sql = `UPDATE ${this.#table} j SET state = 'active', started_on = ${schema}.job_now(), heartbeat_on = ${schema}.job_now(),
        retry_count = CASE WHEN started_on IS NOT NULL THEN retry_count + 1 ELSE retry_count END
      WHERE name = $1 AND id IN (
        SELECT n.id FROM ${this.#table} n WHERE n.name = $1 AND n.id = ANY($2::uuid[]) AND n.state < 'active'
          AND ($3 OR n.start_after <= ${schema}.job_now())
          AND NOT EXISTS (SELECT 1 FROM ${this.#table} a WHERE a.name = $1 AND a.state = 'active' AND a.singleton_key = n.singleton_key)
        FOR UPDATE OF n SKIP LOCKED)
      RETURNING id, retry_count, data`
    try {
      return (await this.#sql(sql, [RUNS_QUEUE, [...ids], which === 'any'])).rows.map(jobIn)
    } catch (error) {
      // another worker has claimed a job of the same run at the same moment
      if ((error as { details?: { sqlState?: unknown } }).details?.sqlState === UNIQUE) return []
      throw error
    }
  }

  #sql(text: string, values: readonly SqlValue[]): Promise<SqlResult> {
    const { postgres, lasting } = this.#options
    return postgres.runApart({ text, values }, lasting)
  }

  async #ask<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      throw storeErrorBelow(error)
    }
  }

  /** Tries again for a while: what it does has the same result when it is done twice. */
  async #again<T>(work: () => Promise<T>): Promise<T> {
    const until = performance.now() + RETRY_MS
    for (let ms = FIRST_MS; ; ms = Math.min(ms * 2, LONGEST_MS)) {
      try {
        return await this.#ask(work)
      } catch (error) {
        if (!RETRIED.has(codeOf(error) ?? '') || performance.now() + ms > until) throw error
      }
      await sleep(ms, undefined, { signal: this.#options.lasting.signal, ref: false })
    }
  }
}

const UNIQUE = '23505'

const jobIn = ({ id, retry_count, data }: SqlResult['rows'][number]): Job => ({
  id: String(id),
  retryCount: Number(retry_count),
  data,
})

import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { JobKind, JobTask, Jobs, JobStep, Json, Schedules, ScheduleSpec, ScheduleTick } from '@svc/core/contracts'
import { abortable, becomes, caseMaker, errorCodeOf, type KitCase, outcome, untilAborted } from './kit-case.ts'

/** The schedules of one process. */
interface SchedulesProcess {
  readonly schedules: Schedules
  readonly jobs: Jobs
}

/** The schedules to test, as seen by two processes that handle ticks and execute jobs. Both have empty, shared stores. */
export interface SchedulesSubject {
  /** The processes that run now. */
  processes(): readonly [SchedulesProcess, SchedulesProcess]
  /** Adds a job kind to both processes. */
  addKind(name: string, kind: JobKind): void
  /** Adds a schedule of a plugin to both processes, and returns its removal. */
  declare(name: string, spec: ScheduleSpec): () => void
  /** The package that `addKind` and `declare` add items as. */
  readonly plugin: string
  /** Shifts the clock with which both processes read the time of ticks, in milliseconds. */
  shift(ms: number): void
  /** Stops both processes, shifts the clock, and starts two new ones. */
  restart(shiftMs: number): Promise<void>
  close?(): unknown
}

/**
 * Cases for every implementation of `Schedules`: `for (const one of schedulesKit(open)) it(one.title, one.run)`. `open` starts two
 * processes that handle ticks, with `catch_up_limit` 20.
 */
export function schedulesKit(open: () => SchedulesSubject | Promise<SchedulesSubject>): KitCase[] {
  const opened = caseMaker(open)
  return GROUPS.flatMap(group => group(opened))
}

type Opened = ReturnType<typeof caseMaker<SchedulesSubject>>
const { ctx } = abortable('schedules kit')
const as = (id: string, ...scopes: string[]): typeof ctx => ({ ...ctx, principal: { id, scopes } })
const [SECOND, MINUTE, HOUR, YEAR] = [1_000, 60_000, 3_600_000, 365 * 86_400_000]

const kind = (work: (task: JobTask, signal: AbortSignal) => Promise<unknown>, more: Partial<JobKind> = {}): JobKind => ({
  description: 'A job of the kit',
  ...more,
  async *run(task, { signal }): AsyncGenerator<JobStep> {
    await work(task, signal)
    yield { type: 'result', value: null }
  },
})
const spec = (parts: Partial<ScheduleSpec> = {}): ScheduleSpec => ({
  ...(parts.cron === undefined ? { everyMs: SECOND } : {}),
  overlap: 'allow',
  job: { kind: 'note' },
  ...parts,
})

/** Milliseconds for a few ticks of a second, even on a slow machine. */
const TICKING_MS = 30_000

/** The handled ticks, oldest first. */
const ticksOf = async ({ processes }: SchedulesSubject, name: string): Promise<ScheduleTick[]> =>
  (await processes()[0].schedules.ticks(name, 100, ctx)).toReversed()

const hasTicks = (subject: SchedulesSubject, name: string, count: number) =>
  becomes(`${count} ticks of ${name}`, async () => (await ticksOf(subject, name)).length >= count, TICKING_MS)

const ticking = (opened: Opened): KitCase[] => [
  opened('starts one job for each tick, although two processes handle them', async subject => {
    const seen: number[] = []
    subject.addKind(
      'note',
      kind(async ({ schedule }) => seen.push(schedule!.tick))
    )
    const [one, two] = subject.processes()
    const added = await one.schedules.add('each', spec(), ctx)
    assert.ok(added.next! > Date.now() && added.next! <= Date.now() + SECOND)
    await hasTicks(subject, 'each', 3)
    await two.schedules.pause('each', ctx)
    const ticks = await ticksOf(subject, 'each')
    await becomes('the jobs', () => seen.length >= ticks.length, TICKING_MS)
    assert.deepEqual(
      ticks.map(({ tick }) => tick),
      ticks.map((_, at) => ticks[0]!.tick + at * SECOND)
    )
    assert.deepEqual(
      seen.toSorted((a, b) => a - b),
      ticks.map(({ tick }) => tick)
    )
    for (const { job, tick } of ticks) {
      const { schedule, owner } = await one.jobs.get(job!, ctx)
      assert.deepEqual([schedule, owner], [{ name: 'each', tick }, ctx.principal.id])
    }
  }),
  opened('starts jobs by a cron expression, with their input', async subject => {
    const inputs: Json[] = []
    subject.addKind(
      'note',
      kind(async ({ input }) => inputs.push(input))
    )
    const [one] = subject.processes()
    await one.schedules.add('cron', spec({ cron: '*/1 * * * * *', job: { kind: 'note', input: { a: 1 } } }), ctx)
    await becomes('a job', () => inputs.length > 0, TICKING_MS)
    assert.deepEqual(inputs[0], { a: 1 })
  }),
]

const pausing = (opened: Opened): KitCase[] => [
  opened('starts no tick while it is paused, and continues with the next one', async subject => {
    subject.addKind(
      'note',
      kind(async () => {})
    )
    const [one, two] = subject.processes()
    await one.schedules.add('paused', spec({ catchUp: 'all' }), ctx)
    await hasTicks(subject, 'paused', 1)
    const paused = await two.schedules.pause('paused', ctx)
    assert.deepEqual([paused.isPaused, paused.next], [true, undefined])
    await sleep(SECOND / 2)
    const before = await ticksOf(subject, 'paused')
    await sleep(2 * SECOND)
    assert.deepEqual(await ticksOf(subject, 'paused'), before)
    const resumedAt = Date.now()
    assert.equal((await one.schedules.resume('paused', ctx)).isPaused, false)
    await hasTicks(subject, 'paused', before.length + 1)
    for (const { tick } of (await ticksOf(subject, 'paused')).slice(before.length)) assert.ok(tick > resumedAt - SECOND)
  }),
  opened('delays jobs by a part of the jitter', async subject => {
    subject.addKind(
      'note',
      kind(async () => {})
    )
    const [one] = subject.processes()
    await one.schedules.add('late', spec({ jitterMs: HOUR }), ctx)
    await hasTicks(subject, 'late', 3)
    const ticks = await ticksOf(subject, 'late')
    const jobs = await Promise.all(ticks.map(({ job }) => one.jobs.get(job!, ctx)))
    const delays = jobs.map(({ due }, at) => due - ticks[at]!.tick)
    assert.ok(delays.every(delay => delay >= 0 && delay <= HOUR))
    assert.ok(new Set(delays).size > 1)
  }),
]

const managing = (opened: Opened): KitCase[] => [
  opened('removes a schedule with the records of its ticks, and its name is free', async subject => {
    subject.addKind(
      'note',
      kind(async () => {})
    )
    const [one, two] = subject.processes()
    await one.schedules.add('gone', spec(), ctx)
    assert.equal(await errorCodeOf(two.schedules.add('gone', spec(), ctx)), 'SCHEDULE_EXISTS')
    await hasTicks(subject, 'gone', 1)
    const [{ job }] = (await ticksOf(subject, 'gone')) as [ScheduleTick]
    await two.schedules.remove('gone', ctx)
    for (const method of ['get', 'pause', 'resume', 'remove', 'run'] as const)
      assert.equal(await errorCodeOf(one.schedules[method]('gone', ctx)), 'SCHEDULE_UNKNOWN')
    assert.equal((await one.jobs.get(job!, ctx)).id, job)
    assert.deepEqual(await one.schedules.list(ctx), [])
    await one.schedules.add('gone', spec({ everyMs: HOUR }), ctx)
    assert.deepEqual(await ticksOf(subject, 'gone'), [])
  }),
  opened('starts the job of a schedule now', async subject => {
    const inputs: Json[] = []
    subject.addKind(
      'note',
      kind(async ({ input }) => inputs.push(input))
    )
    const [one, two] = subject.processes()
    await one.schedules.add('hourly', spec({ everyMs: HOUR, job: { kind: 'note', input: 'now' } }), ctx)
    const { id } = await two.schedules.run('hourly', ctx)
    assert.equal((await one.jobs.settled(id, 5_000, ctx)).state, 'completed')
    assert.deepEqual(inputs, ['now'])
  }),
  opened('hides the schedules of a principal from others, and runs their jobs as that principal', async subject => {
    subject.addKind(
      'note',
      kind(async () => {}, { scope: 'chat' })
    )
    subject.addKind(
      'guarded',
      kind(async () => {})
    )
    const [{ schedules, jobs }] = subject.processes()
    const [anna, ben, admin] = [as('anna', 'chat'), as('ben', 'chat'), as('root', 'admin')]
    await schedules.add('of-anna', spec({ everyMs: HOUR }), anna)
    assert.equal(await errorCodeOf(schedules.add('of-ben', spec({ job: { kind: 'guarded' } }), ben)), 'FORBIDDEN')
    assert.equal(await errorCodeOf(schedules.add('of-ben', spec({ job: { kind: 'typo' } }), ben)), 'JOB_KIND_UNKNOWN')
    assert.equal(await errorCodeOf(schedules.add('of-anna', spec(), ben)), 'SCHEDULE_EXISTS')
    assert.deepEqual(await schedules.list(ben), [])
    assert.equal(await errorCodeOf(schedules.ticks('of-anna', 1, ben)), 'SCHEDULE_UNKNOWN')
    for (const method of ['get', 'pause', 'resume', 'remove', 'run'] as const)
      assert.equal(await errorCodeOf(schedules[method]('of-anna', ben)), 'SCHEDULE_UNKNOWN')
    for (const caller of [anna, admin])
      assert.deepEqual(
        (await schedules.list(caller)).map(({ name }) => name),
        ['of-anna']
      )
    const { id } = await schedules.run('of-anna', admin)
    assert.equal((await jobs.get(id, ctx)).owner, 'anna')
  }),
]

const plugins = (opened: Opened): KitCase[] => [
  opened('runs the schedule of a plugin while the plugin adds it, as that plugin', async subject => {
    subject.addKind(
      'note',
      kind(async () => {})
    )
    const undo = subject.declare('own', spec())
    await hasTicks(subject, 'own', 1)
    const [one, two] = subject.processes()
    const shown = await two.schedules.get('own', ctx)
    assert.deepEqual([shown.origin, shown.owner], ['plugin', `plugin:${subject.plugin}`])
    assert.equal(await errorCodeOf(one.schedules.remove('own', ctx)), 'SCHEDULE_FIXED')
    assert.equal(await errorCodeOf(one.schedules.add('own', spec(), ctx)), 'SCHEDULE_EXISTS')
    assert.equal((await one.schedules.pause('own', ctx)).isPaused, true)
    assert.equal((await two.schedules.resume('own', ctx)).isPaused, false)
    undo()
    await becomes('the end', async () => (await one.schedules.list(ctx)).length === 0)
  }),
  opened('never replaces an added schedule by one of a plugin', async subject => {
    subject.addKind(
      'note',
      kind(async () => {})
    )
    const [one] = subject.processes()
    await one.schedules.add('backup', spec({ everyMs: HOUR }), ctx)
    subject.declare('backup', spec({ everyMs: 2 * HOUR }))
    await sleep(200)
    const shown = await one.schedules.get('backup', ctx)
    assert.deepEqual([shown.origin, shown.everyMs], ['added', HOUR])
  }),
  opened('ignores invalid schedules of a plugin', async subject => {
    subject.addKind(
      'note',
      kind(async () => {})
    )
    const odd: unknown[] = [
      {},
      { cron: '* * *', job: { kind: 'note' } },
      { everyMs: -1, job: { kind: 'note' } },
      { everyMs: 'x' },
    ]
    for (const [at, one] of odd.entries()) subject.declare(`odd${at}`, one as ScheduleSpec)
    subject.declare('Bad Name', spec())
    subject.declare('fine', spec())
    await hasTicks(subject, 'fine', 1)
    assert.deepEqual(
      (await subject.processes()[1].schedules.list(ctx)).map(({ name }) => name),
      ['fine']
    )
  }),
]

/** The ends of jobs of overlapping ticks: their states, oldest first, once there are `count` ticks. */
async function overlapping(subject: SchedulesSubject, overlap: ScheduleSpec['overlap'], count: number) {
  let [now, most, started] = [0, 0, 0]
  subject.addKind(
    'long',
    kind(async (_, signal) => {
      started += 1
      most = Math.max(most, ++now)
      await untilAborted(signal).finally(() => (now -= 1))
    })
  )
  const [one] = subject.processes()
  await one.schedules.add('long', spec({ overlap, job: { kind: 'long' } }), ctx)
  await hasTicks(subject, 'long', count)
  const concurrent = overlap === 'allow' ? 2 : 1
  await becomes(`${concurrent} jobs`, () => started >= concurrent, TICKING_MS)
  await sleep(300)
  await one.schedules.pause('long', ctx)
  const ticks = await ticksOf(subject, 'long')
  const jobs = ticks.map(({ job }) => job)
  const states = await Promise.all(jobs.map(async job => job && (await one.jobs.get(job, ctx)).state))
  return { most, ticks, states, skipped: ticks.filter(({ skipped }) => skipped === 'overlap').length }
}

const overlaps = (opened: Opened): KitCase[] => [
  opened('skips ticks while the earlier job runs', async subject => {
    const { most, states, ticks, skipped } = await overlapping(subject, 'skip', 3)
    assert.deepEqual([most, states[0], skipped], [1, 'running', ticks.length - 1])
  }),
  opened('queues one job while the earlier one runs', async subject => {
    const { most, states, ticks, skipped } = await overlapping(subject, 'queue', 4)
    assert.deepEqual([most, states[0], states[1], skipped], [1, 'running', 'queued', ticks.length - 2])
  }),
  opened('cancels the earlier job', async subject => {
    const { ticks, skipped } = await overlapping(subject, 'cancel', 3)
    assert.equal(skipped, 0)
    const [{ jobs }] = subject.processes()
    for (const { job } of ticks.slice(0, -1)) assert.equal((await jobs.settled(job!, 5_000, ctx)).state, 'cancelled')
    const isRunning = async () => (await jobs.get(ticks.at(-1)!.job!, ctx)).state === 'running'
    await becomes('the last job', isRunning, TICKING_MS)
  }),
  opened('lets jobs of several ticks run at the same time', async subject => {
    const { most, states } = await overlapping(subject, 'allow', 3)
    assert.ok(most >= 2)
    assert.ok(states.filter(state => state === 'running').length >= 2, String(states))
  }),
]

/** Adds a schedule and restarts both processes that much later. Returns the ticks of the time in between, when there are `count`. */
async function missed(
  subject: SchedulesSubject,
  parts: Partial<ScheduleSpec>,
  laterMs: number,
  count: number
): Promise<readonly number[]> {
  subject.addKind(
    'note',
    kind(async () => {})
  )
  await subject.processes()[0].schedules.add('missed', spec(parts), ctx)
  const stopped = Date.now()
  await subject.restart(laterMs)
  const between = async () =>
    (await ticksOf(subject, 'missed'))
      .map(({ tick }) => tick)
      .filter(tick => tick > stopped + MINUTE && tick < stopped + laterMs - 2 * MINUTE)
  await becomes(`${count} ticks`, async () => (await between()).length >= count, TICKING_MS)
  await sleep(SECOND) // for any that are too many
  return between()
}

const catchingUp = (opened: Opened): KitCase[] => [
  opened('drops ticks that were due while no server ran', async subject => {
    assert.deepEqual(await missed(subject, { everyMs: 5 * MINUTE }, HOUR, 0), [])
  }),
  opened('makes up for the last of the missed ticks', async subject => {
    const everyMs = 20 * MINUTE
    const before = Date.now()
    const ticks = await missed(subject, { everyMs, catchUp: 'one' }, 10 * HOUR + (everyMs / 2 - (before % everyMs)), 1)
    assert.equal(ticks.length, 1)
    assert.ok(ticks[0]! > before + 9 * HOUR)
  }),
  opened('makes up for all missed ticks', async subject => {
    const everyMs = 20 * MINUTE
    const ticks = await missed(subject, { everyMs, catchUp: 'all' }, 3 * HOUR + (everyMs / 2 - (Date.now() % everyMs)), 9)
    assert.equal(ticks.length, 9)
    assert.ok(ticks.every((tick, at) => at === 0 || tick === ticks[at - 1]! + everyMs))
  }),
  opened('makes up for a limited number of missed ticks, even after ten years of a tick per second', async subject => {
    subject.addKind(
      'note',
      kind(async () => {})
    )
    const [{ schedules }] = subject.processes()
    await schedules.add('interval', spec({ everyMs: SECOND, catchUp: 'all' }), ctx)
    await schedules.add('cron', spec({ cron: '* * * * * *', catchUp: 'all' }), ctx)
    await subject.restart(10 * YEAR)
    for (const name of ['interval', 'cron']) {
      await hasTicks(subject, name, 20)
      assert.ok((await ticksOf(subject, name)).length <= 40)
    }
  }),
  opened('handles no tick twice when the clock is set back, and continues', async subject => {
    subject.addKind(
      'note',
      kind(async () => {})
    )
    const [one] = subject.processes()
    await one.schedules.add('steps', spec({ catchUp: 'all' }), ctx)
    await hasTicks(subject, 'steps', 2)
    subject.shift(-HOUR)
    const isPast = async () => (await ticksOf(subject, 'steps')).some(({ tick }) => tick < Date.now() - HOUR / 2)
    await becomes('a tick of the past', isPast, TICKING_MS)
    subject.shift(HOUR)
    const isPresent = async () => (await ticksOf(subject, 'steps')).at(-1)!.tick > Date.now() - MINUTE
    await becomes('a tick of the present', isPresent, TICKING_MS)
    const ticks = (await ticksOf(subject, 'steps')).map(({ tick }) => tick)
    const { jobs } = await one.jobs.list({ limit: 200 }, ctx)
    assert.equal(new Set(jobs.map(({ schedule }) => schedule?.tick)).size, jobs.length)
    assert.ok(ticks.length <= 40, `${ticks.length} ticks`)
  }),
]

interface Nonsense {
  readonly parts: Record<string, unknown>
  readonly field: string
  readonly position?: number
}

const cron = (text: string, position: number): Nonsense => ({ parts: { cron: text }, field: 'cron', position })
const NONSENSE: readonly Nonsense[] = [
  cron('', 1),
  cron('* * * *', 8),
  cron('* * * * * * *', 13),
  cron('61 * * * *', 1),
  cron('0 25 * * *', 3),
  cron('0 3,9,99 * * *', 7),
  cron('0  0  1-40 * *', 7),
  cron('*/0 * * * *', 1),
  cron('0 0 * * MON-FOO', 9),
  cron('@reboot', 1),
  cron('0 0 31 2 *', 5),
  cron('0 0 * * *\u0000', 9),
  { parts: { cron: '*'.repeat(300) }, field: 'cron' },
  { parts: { cron: '0 3 * * *', timeZone: 'Europe/Berln' }, field: 'time_zone' },
  { parts: { everyMs: SECOND, timeZone: 'UTC' }, field: 'time_zone' },
  { parts: { everyMs: 999 }, field: 'every' },
  { parts: { everyMs: Number.NaN }, field: 'every' },
  { parts: { cron: '0 3 * * *', everyMs: SECOND }, field: 'schedule' },
  { parts: { everyMs: SECOND, jitterMs: -1 }, field: 'jitter' },
  { parts: { everyMs: SECOND, catchUp: 'some' }, field: 'catch_up' },
  { parts: { everyMs: SECOND, overlap: 'some' }, field: 'overlap' },
  { parts: { everyMs: SECOND, job: {} }, field: 'job' },
  { parts: { everyMs: SECOND, typo: 1 }, field: 'schedule' },
]

const checking = (opened: Opened): KitCase[] => [
  opened('rejects invalid schedules, with the position in the cron expression', async subject => {
    const [{ schedules }] = subject.processes()
    for (const { parts, field, position } of NONSENSE) {
      const given = { job: { kind: 'note' }, ...parts } as unknown as ScheduleSpec
      const { error } = await outcome(schedules.preview(given, { from: 0, count: 1 }, ctx))
      const { code, details } = error as { code?: string; details?: { field?: string; position?: number } }
      assert.deepEqual([code, details?.field, details?.position], ['SCHEDULE_INVALID', field, position], JSON.stringify(parts))
    }
    for (const name of ['', 'A', 'a b', 'a/b', 'x'.repeat(65), '../a'])
      assert.equal(await errorCodeOf(schedules.add(name, spec(), ctx)), 'SCHEDULE_INVALID', name)
  }),
  opened('follows the clocks of time zones over daylight saving', async subject => {
    const [{ schedules }] = subject.processes()
    const ticks = async (expression: string, timeZone: string, from: string, count: number) => {
      const found = await schedules.preview(spec({ cron: expression, timeZone }), { from: Date.parse(from), count }, ctx)
      return found.map(tick => new Date(tick).toISOString().slice(5, 16))
    }
    const berlin = (expression: string, from: string, count: number) => ticks(expression, 'Europe/Berlin', from, count)
    // 02:30 does not exist on March 28: the job starts right after the gap
    assert.deepEqual(await berlin('30 2 * * *', '2027-03-27T00:00Z', 3), ['03-27T01:30', '03-28T01:00', '03-29T00:30'])
    assert.deepEqual(await berlin('0 2,3 * * *', '2027-03-27T12:00Z', 2), ['03-28T01:00', '03-29T00:00'])
    // 02:30 exists twice on October 31: the job starts at the first
    assert.deepEqual(await berlin('30 2 * * *', '2027-10-30T12:00Z', 2), ['10-31T00:30', '11-01T01:30'])
    // a job with a step leaves the gap out, and starts in both hours
    assert.deepEqual(await berlin('*/30 2 * * *', '2027-03-27T12:00Z', 1), ['03-29T00:00'])
    assert.deepEqual(await berlin('*/30 2 * * *', '2027-10-30T12:00Z', 5), [
      '10-31T00:00',
      '10-31T00:30',
      '10-31T01:00',
      '10-31T01:30',
      '11-01T01:00',
    ])
    // half an hour of daylight saving, and none at all
    assert.deepEqual(await ticks('0 2 * * *', 'Australia/Lord_Howe', '2027-10-02T00:00Z', 2), ['10-02T15:30', '10-03T15:00'])
    assert.deepEqual(await ticks('0 9 * * 1', 'Asia/Kolkata', '2027-01-01T00:00Z', 2), ['01-04T03:30', '01-11T03:30'])
    assert.deepEqual(await ticks('@monthly', 'America/New_York', '2027-03-01T12:00Z', 2), ['04-01T04:00', '05-01T04:00'])
  }),
]

const GROUPS = [ticking, pausing, managing, plugins, overlaps, catchingUp, checking] as const

import assert from 'node:assert/strict'
import { setTimeout } from 'node:timers/promises'
import type { CallContext } from '@svc/core'
import { type Counted, Counts, type CountWindow } from '@svc/core/contracts'
import type { KitCase } from './kit-case.ts'
import { fails, withClockAhead, withTimeLimit } from './store-kit/rig.ts'

/** Counts to test. Disposing removes them. */
export interface CountsUnderTest extends AsyncDisposable {
  readonly counts: Counts
  /** Closes `counts` and opens the same data again. Absent: the counts do not last, and the kit skips these cases. */
  reopen?(): Promise<Counts>
  /** Another handle on the same counts, as another process would have. Absent: the kit uses the only one twice. */
  second?(): Promise<Counts>
}
export type OpenCounts = () => Promise<CountsUnderTest>

/**
 * Cases for every service that counts, such as a store: `for (const one of countsKit(open)) it(one.title, one.run)`. `open`
 * returns new, empty counts each time.
 */
export function countsKit(open: OpenCounts): KitCase[] {
  return countCases.map(([title, run]) => ({
    title,
    async run() {
      await using under = await open()
      await withTimeLimit(ctx =>
        run({
          counts: under.counts,
          ctx,
          reopen: under.reopen?.bind(under),
          second: async () => (under.second ? under.second() : under.counts),
        })
      )
    },
  }))
}

/** The environment of a case. */
interface Rig {
  readonly counts: Counts
  readonly ctx: CallContext
  readonly reopen: (() => Promise<Counts>) | undefined
  second(): Promise<Counts>
}

const HOUR = 3_600_000
const hour = (limit: number): CountWindow => ({ ms: HOUR, limit })
const times = (count: number, handle: (at: number) => Counts, key: string, windows: readonly CountWindow[], { ctx }: Rig) =>
  Promise.all(Array.from({ length: count }, (_, at) => handle(at).count(key, windows, ctx)))
const hits = ({ windows }: Counted) => windows.map(window => window.count)

/** The most that the clock of a service under test differs from the clock of the test. */
const CLOCK_MS = 500

/** Checks the time that is left, and leaves it out. */
function timeless({ counted, windows }: Counted) {
  for (const { leftMs } of windows) assert.ok(leftMs > 0 && leftMs <= 2 * HOUR, `${leftMs} ms are left`)
  return { counted, windows: windows.map(({ count, endsAt }) => ({ count, endsAt })) }
}

/** Waits until a window is over. */
async function past(endsAt: number): Promise<void> {
  while (Date.now() <= endsAt + CLOCK_MS) await setTimeout(endsAt + CLOCK_MS - Date.now() + 1)
}

/** The cases. */
const countCases: readonly (readonly [title: string, run: (rig: Rig) => Promise<void>])[] = [
  [
    'counts exactly: of 1000 concurrent hits on two handles, accepts as many as the limit',
    async rig => {
      const handles = [rig.counts, await rig.second()]
      const done = await times(1000, at => handles[at % 2]!, 'k', [hour(600)], rig)
      const counted = done.filter(time => time.counted).map(time => hits(time)[0]!)
      assert.deepEqual(
        counted.sort((a, b) => a - b),
        Array.from({ length: 600 }, (_, at) => at + 1)
      )
      assert.ok(done.every(time => time.counted || hits(time)[0] === 600))
      assert.equal(new Set(done.map(time => time.windows[0]!.endsAt)).size, 1, 'one window has several ends')
    },
  ],
  [
    'counts a hit in all windows, or in none if one is full',
    async rig => {
      const other = await rig.second()
      const windows = [hour(2), { ms: 24 * HOUR, limit: 5 }]
      const done = await times(4, at => (at % 2 ? other : rig.counts), 'k', windows, rig)
      assert.equal(done.filter(time => time.counted).length, 2)
      assert.deepEqual(hits(await rig.counts.count('k', [hour(9), windows[1]!], rig.ctx)), [3, 3])
      for (const count of [4, 5]) assert.deepEqual(hits(await other.count('k', [hour(9), windows[1]!], rig.ctx)), [count, count])
      const full = await rig.counts.count('k', [hour(9), windows[1]!], rig.ctx)
      assert.deepEqual([full.counted, hits(full)], [false, [5, 5]])
    },
  ],
  [
    'ends a window at the reported time after its first hit',
    async rig => {
      const before = Date.now()
      const first = await rig.counts.count('k', [hour(9)], rig.ctx)
      const after = Date.now()
      const { endsAt } = first.windows[0]!
      // the clock of the service can differ a little
      assert.ok(endsAt >= before + HOUR - CLOCK_MS && endsAt <= after + HOUR + CLOCK_MS)
      assert.deepEqual(timeless(await rig.counts.count('k', [hour(9)], rig.ctx)), {
        counted: true,
        windows: [{ count: 2, endsAt }],
      })
    },
  ],
  [
    'starts again when a window ends, and keeps the longer window',
    async rig => {
      const windows = [{ ms: 40, limit: 1 }, hour(9)]
      const first = await rig.counts.count('k', windows, rig.ctx)
      await past(first.windows[0]!.endsAt)
      const next = await (await rig.second()).count('k', windows, rig.ctx)
      assert.deepEqual([next.counted, hits(next)], [true, [1, 2]])
      assert.ok(next.windows[0]!.endsAt > first.windows[0]!.endsAt)
      assert.equal(next.windows[1]!.endsAt, first.windows[1]!.endsAt)
    },
  ],
  [
    'counts in the same windows for a process whose clock differs',
    async rig => {
      const ahead = withClockAhead(Counts, await rig.second(), 5 * 60_000)
      const minute = { ms: 60_000, limit: 9 }
      const first = await rig.counts.count('k', [minute], rig.ctx)
      const { endsAt } = first.windows[0]!
      assert.deepEqual(timeless(await ahead.count('k', [minute], rig.ctx)), { counted: true, windows: [{ count: 2, endsAt }] })
      assert.deepEqual(hits(await rig.counts.count('k', [minute], rig.ctx)), [3])
      const began = (await ahead.count('other', [minute], rig.ctx)).windows[0]!.endsAt
      assert.ok(Math.abs(began - endsAt) < 20_000, 'the clock of the caller sets the window')
    },
  ],
  [
    'keeps keys apart',
    async rig => {
      for (const key of ['a', 'A', 'a ', 'ä', '😀', '__proto__']) {
        assert.deepEqual(hits(await rig.counts.count(key, [hour(1)], rig.ctx)), [1])
        assert.equal((await rig.counts.count(key, [hour(1)], rig.ctx)).counted, false)
      }
    },
  ],
  [
    'does not count refused hits, and keeps the hits when a limit changes',
    async rig => {
      await times(5, () => rig.counts, 'k', [hour(2)], rig)
      assert.deepEqual(hits(await rig.counts.count('k', [hour(3)], rig.ctx)), [3])
      const less = await rig.counts.count('k', [hour(1)], rig.ctx)
      assert.deepEqual([less.counted, hits(less)], [false, [3]])
    },
  ],
  [
    'keeps the hits when the length of a window changes, counted from its first hit',
    async rig => {
      const first = await rig.counts.count('k', [hour(9)], rig.ctx)
      const began = first.windows[0]!.endsAt - HOUR
      const longer = await rig.counts.count('k', [{ ms: 2 * HOUR, limit: 9 }], rig.ctx)
      assert.deepEqual(timeless(longer).windows, [{ count: 2, endsAt: began + 2 * HOUR }])
      const refused = await rig.counts.count('k', [{ ms: HOUR / 2, limit: 2 }], rig.ctx)
      assert.deepEqual(timeless(refused), { counted: false, windows: [{ count: 2, endsAt: began + HOUR / 2 }] })
      await past(began + 1)
      assert.deepEqual(hits(await rig.counts.count('k', [{ ms: 1, limit: 9 }], rig.ctx)), [1])
    },
  ],
  [
    'starts a new window next to an existing one',
    async rig => {
      await times(3, () => rig.counts, 'k', [hour(9)], rig)
      assert.deepEqual(hits(await rig.counts.count('k', [hour(9), hour(9)], rig.ctx)), [4, 1])
      assert.deepEqual(hits(await rig.counts.count('k', [hour(9)], rig.ctx)), [5])
      assert.deepEqual(hits(await rig.counts.count('k', [hour(9), hour(9)], rig.ctx)), [6, 2])
    },
  ],
  [
    'keeps its hits when it is reopened',
    async rig => {
      if (!rig.reopen) return
      await times(3, () => rig.counts, 'k', [hour(9)], rig)
      assert.deepEqual(hits(await (await rig.reopen()).count('k', [hour(9)], rig.ctx)), [4])
    },
  ],
  [
    'returns the state without counting when the limit is 0',
    async rig => {
      const look = () => rig.counts.count('k', [{ ms: HOUR, limit: 0 }], rig.ctx)
      for (const count of [0, 1, 2]) {
        const { counted, windows } = await look()
        assert.deepEqual([counted, windows.map(window => window.count)], [false, [count]])
        assert.deepEqual(hits(await rig.counts.count('k', [hour(9)], rig.ctx)), [count + 1])
      }
    },
  ],
  [
    'rejects invalid limits and windows',
    async rig => {
      const bad: (readonly CountWindow[])[] = [
        [],
        [{ ms: 0, limit: 1 }],
        [{ ms: 1.5, limit: 1 }],
        [{ ms: Number.POSITIVE_INFINITY, limit: 1 }],
        [{ ms: 1e15, limit: 1 }],
        [{ ms: 1, limit: -1 }],
        [hour(1), { ms: 1, limit: Number.NaN }],
        Array.from({ length: 17 }, () => hour(1)),
      ]
      for (const windows of bad) await fails(rig.counts.count('k', windows, rig.ctx), 'STORE_INVALID')
      for (const key of ['', 'x'.repeat(1025), 'a\u0000b', '\ud800'])
        await fails(rig.counts.count(key, [hour(1)], rig.ctx), 'STORE_INVALID')
      assert.deepEqual(hits(await rig.counts.count('k', [hour(1)], rig.ctx)), [1])
    },
  ],
]

/** Runs a test with what it has for itself, a folder for example, and clears that away. */
export type Within<S> = (run: (subject: S) => Promise<void>) => Promise<void>
type Declare<S> = (title: string, run: (subject: S) => Promise<void>) => Mocha.Test

interface Side {
  readonly run: () => Promise<void>
  outcome?: Promise<void>
}

/** Most of what such a test does is to wait until processes have started, one after the other. */
const WIDTH = 2
/** For those that mocha has given up. */
const LONGEST_MS = 120_000

/**
 * An `it` whose tests run some at a time, in the order in which they stand: for tests that start processes of their own and share nothing, no `beforeEach`,
 * no state of this process, and have one worker or two. mocha tells each as always, and waits for each; of those that -g leaves out, at most the next ones run too.
 */
export const sideBySide = (): Declare<void> => sideBySideIn(run => run())

/** The same for tests that each are given something of their own. */
export function sideBySideIn<S>(within: Within<S>): Declare<S> {
  const sides: Side[] = []
  let running = 0
  let awaited: Side | undefined
  const begin = (side: Side) => {
    running++
    side.outcome = side.run().finally(() => {
      running--
      beginMore()
    })
    side.outcome.catch(() => {}) // its own `it` tells it
  }
  const beginMore = () => {
    for (const side of awaited ? sides.slice(sides.indexOf(awaited)) : []) if (running < WIDTH && !side.outcome) begin(side)
  }
  after('the last of them end', async function () {
    this.timeout(LONGEST_MS)
    await Promise.allSettled(sides.flatMap(side => side.outcome ?? []))
  })
  return (title, run) => {
    const side: Side = { run: async () => within(run) }
    sides.push(side)
    return it(title, async () => {
      if (!side.outcome) begin(side)
      awaited = side
      beginMore()
      await side.outcome
      awaited = undefined
    })
  }
}

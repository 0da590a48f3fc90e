import type { ChildProcess } from 'node:child_process'
import { relative } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { config } from 'chai'

// A text that did not match is what explains a failure: chai would show 40 characters of it.
config.truncateThreshold = 0

const settle = 3_000
let before: Map<string, number>

const children = new Set<ChildProcess>()

/** Kills this process at the end of the file that started it: a test that ran out of time ends nothing itself. */
export function endWithFile(child: ChildProcess): void {
  children.add(child)
  child.once('exit', () => children.delete(child))
}

/** Fails the run, or the file where files run side by side, when a test leaves a server, socket, child process or timer behind that keeps Node alive. */
export const mochaHooks = {
  async beforeAll(this: Mocha.Context): Promise<void> {
    this.timeout(0)
    await sleep(1) // mocha sets a timer for each hook that waits: here as there it is one of those counted
    before = resources()
  },

  async afterAll(this: Mocha.Context): Promise<void> {
    this.timeout(0)
    for (const child of children) child.kill('SIGKILL')
    const end = Date.now() + settle
    await sleep(1)
    while (leftovers().length > 0 && Date.now() < end) await sleep(50)
    const left = leftovers()
    if (left.length > 0)
      throw new Error(
        `${filesOf(this)} left open: ${left.join(', ')}\n  Close what a test opens (await using, afterEach); find it with mocha -g.`
      )
  },
}

/** The file that ran, by its path in the repository; where several did, nobody can tell whose it is. */
function filesOf({ test }: Mocha.Context): string {
  const files = new Set([test?.parent?.suites, test?.parent?.tests].flatMap(all => all?.map(item => item.file)))
  const [file] = files
  return files.size === 1 && file !== undefined ? relative(process.cwd(), file) : 'the tests'
}

function leftovers(): string[] {
  return [...resources()].flatMap(([type, count]) => {
    const more = count - (before.get(type) ?? 0)
    return more > 0 ? [`${more} ${type}`] : []
  })
}

function resources(): Map<string, number> {
  const counts = new Map<string, number>()
  for (const type of process.getActiveResourcesInfo()) counts.set(type, (counts.get(type) ?? 0) + 1)
  return counts
}

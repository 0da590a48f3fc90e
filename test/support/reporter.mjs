import { writeFileSync } from 'node:fs'
import { relative } from 'node:path'
import Mocha from 'mocha'

const SLOWEST = 15
/** What `needs.ts` and the kits write into the title of a test that they skip. */
const REASON = /\[skipped: (.+?)\](?: |$)|– skipped: (.+)$/

/** What `leftovers.ts` says of a file: the hook that fails is one of all files. */
const LEFT_OPEN = /^(\S+\.spec\.ts) left open/

/** mocha's own report, then the slowest files, why tests were skipped, and one plain line that a pipeline can read. */
export default class Reporter extends Mocha.reporters.Spec {
  constructor(runner, options) {
    const files = new Map()
    const reasons = new Map()
    const failed = new Set()
    const spent = ({ file, duration = 0 }) => file && files.set(file, (files.get(file) ?? 0) + duration)
    runner.on('test end', spent)
    runner.on('hook end', spent)
    runner.on('pending', test => {
      const [, suite, kit] = REASON.exec(test.fullTitle()) ?? []
      const reason = suite ?? kit ?? 'no reason given'
      reasons.set(reason, (reasons.get(reason) ?? 0) + 1)
    })
    // a file whose process died, or that cannot be read: mocha knows it and does not say it
    runner.on('fail', (test, { file, message = '' } = {}) => {
      failed.add(test.file ?? file ?? LEFT_OPEN.exec(message)?.[1])
      if (file !== undefined && test.file === undefined) test.title += ` (${relative(process.cwd(), file)})`
    })
    super(runner, options)
    this.files = files
    this.reasons = reasons
    this.failed = failed
  }

  epilogue() {
    super.epilogue()
    const slowest = [...this.files].sort(([, a], [, b]) => b - a).slice(0, SLOWEST)
    if (this.files.size > SLOWEST) {
      console.log(`The ${SLOWEST} slowest files, in seconds:`)
      for (const [file, ms] of slowest) console.log(`${(ms / 1000).toFixed(1).padStart(7)}  ${relative(process.cwd(), file)}`)
    }
    if (this.reasons.size > 0) console.log('\nSkipped, and why:')
    for (const [reason, count] of this.reasons) console.log(`${String(count).padStart(7)}  ${reason}`)
    // A failure without a file, as of the run itself, cannot be repeated.
    const again = process.env.SVC_TEST_FAILED
    if (again !== undefined && this.failed.size > 0 && !this.failed.has(undefined))
      writeFileSync(again, [...this.failed].join('\n'))
    const { passes, failures, pending } = this.stats
    console.log(`\n${passes} passed, ${failures} failed, ${pending} skipped`)
  }
}

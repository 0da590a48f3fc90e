import { relative } from 'node:path'
import Mocha from 'mocha'

/** mocha's own report, closed by one plain line that a pipeline can read. */
export default class Reporter extends Mocha.reporters.Spec {
  constructor(runner, options) {
    // a file whose process died, or that cannot be read: mocha knows it and does not say it
    runner.on('fail', (test, { file } = {}) => {
      if (file !== undefined && test.file === undefined) test.title += ` (${relative(process.cwd(), file)})`
    })
    super(runner, options)
  }

  epilogue() {
    super.epilogue()
    const { passes, failures, pending } = this.stats
    console.log(`${passes} passed, ${failures} failed, ${pending} skipped`)
  }
}

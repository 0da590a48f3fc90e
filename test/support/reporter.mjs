import Mocha from 'mocha'

/** mocha's own report, closed by one plain line that a pipeline can read. */
export default class Reporter extends Mocha.reporters.Spec {
  epilogue() {
    super.epilogue()
    const { passes, failures, pending } = this.stats
    console.log(`${passes} passed, ${failures} failed, ${pending} skipped`)
  }
}

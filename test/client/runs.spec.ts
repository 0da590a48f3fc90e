import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createClient, isApiError } from '@svc/client'
import { expect } from 'chai'
import { inNewHome, startService } from '../support/service.ts'

const RUNS = fileURLToPath(new URL('../support/runs.ts', import.meta.url))

const codeOf = (error: unknown) => (isApiError(error) ? `${error.status} ${error.code}` : String(error))

describe('the client and runs that are operated', function () {
  this.timeout(120_000)

  it('replays, pauses, counts, cancels and retries them, reads results, and handles dead letters', () =>
    inNewHome(async home => {
      await writeFile(join(home, 'svc.config.json'), JSON.stringify({ plugins: [RUNS] }))
      await using service = await startService({ home })
      const { runs } = createClient({ url: service.url })
      const sum = await runs.start({ workflow: 'sum', input: { a: 1 } })
      const replayed = await runs.replay(sum.workflow_id, { input: { a: 5 } }, { waitSeconds: 10 })
      expect([replayed.status, await runs.result(replayed.workflow_id)]).to.deep.equal(['completed', { sum: 6 }])
      expect(await runs.result(replayed.workflow_id, { step: 'add' })).to.deep.equal({ sum: 6 })
      expect((await runs.get(replayed.workflow_id)).replay_of).to.equal(sum.workflow_id)
      expect(await runs.replay(sum.workflow_id, { from: 'none' }).catch(codeOf)).to.equal('400 INVALID_VALUE')

      const { workflow_id: asking } = await runs.start({ workflow: 'ask' }, { waitSeconds: 0 })
      expect((await runs.pause(asking)).paused_at).to.be.a('string')
      expect((await runs.resume(asking)).paused_at).to.equal(null)
      expect(await runs.bulk({ action: 'cancel', workflow: 'ask', dry_run: true })).to.deep.equal({ count: 1, job_id: null })
      expect(await runs.bulk({ action: 'cancel', workflow: 'ask' })).to.include({ count: 1, changed: 1 })

      const { workflow_id: failed } = await runs.start({ workflow: 'fail' })
      expect((await runs.deadLetters.list()).runs.map(run => run.workflow_id)).to.deep.equal([failed])
      expect((await runs.deadLetters.get(failed)).failed_steps.length).to.equal(1)
      const retried = await runs.deadLetters.retry(failed)
      expect(await runs.deadLetters.retry(failed).catch(codeOf)).to.equal('400 INVALID_VALUE')
      await runs.deadLetters.drop(retried.workflow_id)
      expect((await runs.deadLetters.list()).runs).to.deep.equal([])
    }))
})

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { CONDITIONS } from './support/entry.ts'
import { inNewHome } from './support/service.ts'
import { effectsIn, type EndedRun } from './support/workflow-host.ts'

const CHILD = fileURLToPath(new URL('support/workflow-crash.ts', import.meta.url))

/** A process of its own that tells things, a line each. */
function begin(...args: string[]) {
  const child = spawn(process.execPath, [...CONDITIONS, CHILD, ...args], { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const reported = async () => JSON.parse(String((await lines.next()).value)) as unknown
  return { child, told: reported, exit: once(child, 'exit') }
}

/** One process stops while a node runs in it, another takes over, and then the first goes on. */
async function takenOver(home: string, kind: 'repeatable' | 'not repeatable') {
  const files = [`${home}/svc.db`, `${home}/effects`] as const
  const stale = begin('hold', ...files, kind)
  await stale.told()
  stale.child.kill('SIGSTOP')
  const next = begin('go', ...files, 'killed')
  const [run] = (await next.told()) as readonly EndedRun[]
  stale.child.kill('SIGCONT')
  stale.child.stdin.write('end\n')
  const afterwards = (await stale.told()) as EndedRun
  await Promise.all([stale.exit, next.exit])
  return { run: run!, afterwards, steps: effectsIn(files[1]).map(({ step }) => step) }
}

describe('a workflow whose process stops while a node runs', () => {
  it('continues in another process if the node can run again, and ignores late writes of the first', () =>
    inNewHome(async home => {
      const { run, afterwards, steps } = await takenOver(home, 'repeatable')
      expect(run).to.include({ status: 'completed' })
      expect(afterwards).to.deep.equal(run)
      expect(steps).to.deep.equal(['one', 'three'])
    })).timeout(60_000)

  it('fails with the reason if the node cannot run again, and ignores late writes of the first', () =>
    inNewHome(async home => {
      const { run, afterwards, steps } = await takenOver(home, 'not repeatable')
      expect(run.status).to.equal('failed')
      expect(run.error).to.include({ code: 'NODE_INTERRUPTED' })
      expect(afterwards).to.deep.equal(run)
      expect(steps).to.deep.equal(['one'])
    })).timeout(60_000)
})

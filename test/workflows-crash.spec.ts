import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { inNewHome } from './support/service.ts'
import { callsIn, effectsIn, type Told } from './support/workflow-host.ts'
import { TWELVE_EFFECTS, TWELVE_RESULT } from './support/workflow-twelve.ts'

const CHILD = fileURLToPath(new URL('support/workflow-crash.ts', import.meta.url))

/** What a process of its own says, and how it ended. */
async function ran(...args: string[]) {
  const child = spawn(process.execPath, ['--conditions=svc-source', CHILD, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [said, [code, signal]] = await Promise.all([text(child.stdout), once(child, 'exit')])
  return { said: JSON.parse(said) as unknown, code: code as number | null, signal: signal as string | null }
}

const countBy = (steps: readonly string[]) =>
  steps.reduce((counts, step) => counts.set(step, (counts.get(step) ?? 0) + 1), new Map<string, number>())

describe('workflows in a process that is killed', () => {
  it('have each effect exactly once and the right result, wherever it was killed', () =>
    inNewHome(async home => {
      const files = [`${home}/svc.db`, `${home}/effects`] as const
      const killed = await ran('crash', ...files)
      const { writes, runs } = killed.said as { writes: number; runs: number }
      expect(killed.signal).to.equal('SIGKILL')
      // a write a step at least: the boundaries are before each, and after each
      expect(writes).to.be.greaterThan(25)
      expect(runs).to.equal(2 * writes + 1)
      const told = (await ran('go', ...files, 'killed')).said as readonly Told[]
      // of the runs that were stopped at their first write all are there: they were begun
      expect(told).to.have.length(runs)
      const [effects, calls] = [effectsIn(files[1]), callsIn(files[1])]
      for (const { id, ...run } of told) {
        expect(run).to.deep.equal({ status: 'completed', result: TWELVE_RESULT })
        const done = effects.filter(one => one.run === id)
        expect(done.map(({ step }) => step)).to.have.members(TWELVE_EFFECTS)
        expect(new Set(done.map(({ key }) => key)).size).to.equal(TWELVE_EFFECTS.length)
        const again = [...countBy(calls.filter(one => one.run === id).map(({ step }) => step))].filter(
          ([step, count]) => count > (step === 'again' ? 2 : 1)
        )
        // only what ran when it was killed is called once more: at most the two lanes that ran beside each other
        expect(again.length, JSON.stringify(again)).to.be.at.most(2)
        expect(Math.max(0, ...again.map(([step, count]) => count - (step === 'again' ? 2 : 1)))).to.be.at.most(1)
      }
    })).timeout(120_000)
})

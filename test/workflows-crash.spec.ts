import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { Jobs, Workflows } from '@svc/core/contracts'
import { expect } from 'chai'
import { inNewHome } from './support/service.ts'
import { callsIn, effectsIn, type EndedRun, openWorkflowHost, workflowContext } from './support/workflow-host.ts'
import { TWELVE_EFFECTS, TWELVE_RESULT, UNDOES_EFFECTS } from './support/workflow-twelve.ts'

const ctx = workflowContext()
const CHILD = fileURLToPath(new URL('support/workflow-crash.ts', import.meta.url))

/** What a process of its own says, and how it ended. */
async function ran(...args: string[]) {
  const child = spawn(process.execPath, ['--conditions=svc-source', CHILD, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [said, [code, signal]] = await Promise.all([text(child.stdout), once(child, 'exit')])
  return { said: JSON.parse(said) as unknown, code: code as number | null, signal: signal as string | null }
}

const countBy = (steps: readonly string[]) =>
  steps.reduce((counts, step) => counts.set(step, (counts.get(step) ?? 0) + 1), new Map<string, number>())

/** What was called once more than it had to be: what ran when its process was killed. */
const calledAgain = (steps: readonly string[], twice: readonly string[]) =>
  [...countBy(steps)].map(([step, count]) => count - (twice.includes(step) ? 2 : 1)).filter(more => more > 0)

/** The effects and calls of a run, and how it ended. */
function outcomes(reported: readonly EndedRun[], file: string) {
  const [effects, calls] = [effectsIn(file), callsIn(file)]
  return reported.map(({ id, workflow, ...run }) => {
    const done = effects.filter(effect => effect.run === id)
    return {
      workflow,
      run,
      steps: done.map(({ step }) => step),
      keys: new Set(done.map(({ key }) => key)).size,
      calls: calls.filter(call => call.run === id).map(({ step }) => step),
    }
  })
}

describe('workflows in a process that is killed', () => {
  it('apply and undo each effect exactly once and return the right result, at whatever point the process was killed', () =>
    inNewHome(async home => {
      const files = [`${home}/svc.db`, `${home}/effects`] as const
      const killed = await ran('crash', ...files)
      const writes = killed.said as { twelve: number; undoes: number }
      expect(killed.signal).to.equal('SIGKILL')
      // a write a step at least: the boundaries are before each, and after each
      expect(writes.twelve).to.be.greaterThan(25)
      expect(writes.undoes).to.be.greaterThan(UNDOES_EFFECTS.length)
      const all = outcomes((await ran('go', ...files, 'killed')).said as readonly EndedRun[], files[1])
      const [twelve, undoes] = ['twelve', 'undoes'].map(name => all.filter(({ workflow }) => workflow === name)) as [
        typeof all,
        typeof all,
      ]
      // all but the one that was stopped before its first write, which is what makes it: nobody was told that it has begun
      expect([twelve.length, undoes.length]).to.deep.equal([2 * writes.twelve, 2 * writes.undoes])
      for (const { run, steps, keys, calls } of twelve) {
        expect(run).to.deep.equal({ status: 'completed', result: TWELVE_RESULT })
        expect(steps).to.have.members(TWELVE_EFFECTS)
        expect(keys).to.equal(TWELVE_EFFECTS.length)
        const again = calledAgain(calls, ['again'])
        // only what ran when it was killed is called once more: at most the two lanes that ran beside each other
        expect(again.length, calls.join()).to.be.at.most(2)
        expect(Math.max(0, ...again)).to.be.at.most(1)
      }
      for (const { run, steps, keys, calls } of undoes) {
        expect(run.status).to.equal('failed')
        expect(run.error).to.deep.include({ code: 'EFFECT_FAILED' }).and.to.not.have.nested.property('details.not_undone')
        expect(steps).to.deep.equal(UNDOES_EFFECTS)
        expect(keys).to.equal(UNDOES_EFFECTS.length)
        expect(calledAgain(calls, ['undo/one/back']).length, calls.join()).to.be.at.most(1)
      }
    })).timeout(120_000)

  it('leave no replay or a whole one, which reuses what the run had done and does the rest exactly once', () =>
    inNewHome(async home => {
      const files = [`${home}/svc.db`, `${home}/effects`] as const
      const killed = await ran('replay', ...files)
      expect(killed.signal).to.equal('SIGKILL')
      const { original, most } = killed.said as { original: string; most: number }
      expect(most).to.be.greaterThan(3)
      const { said } = await ran('go', ...files, 'linked')
      const { reported, links } = said as {
        reported: readonly EndedRun[]
        links: readonly { id: string; replayOf?: string; continuedBy?: string }[]
      }
      const replays = outcomes(
        reported.filter(({ id }) => id !== original),
        files[1]
      )
      // the whole one, and all but the one that was stopped before its first write
      expect(replays.length).to.equal(2 * most)
      for (const { run, steps } of replays) {
        expect(run).to.deep.equal({ status: 'completed', result: 'done' })
        expect(steps).to.deep.equal(['two', 'three', 'four'])
      }
      expect(links.filter(({ id }) => id !== original).every(({ replayOf }) => replayOf === original)).to.equal(true)
      const { continuedBy } = links.find(({ id }) => id === original)!
      expect(links.map(({ id }) => id)).to.include(continuedBy)
    })).timeout(120_000)

  it('leave exactly one run of a chain going on, with its events, at whatever write they are killed', () =>
    inNewHome(async home => {
      const counts = Array.from({ length: 16 }, (_, count) => count)
      for (const count of counts) {
        const files = { db: `${home}/chain-${count}.db`, effects: `${home}/chain-${count}` }
        const { said, signal } = await ran('chain', files.db, files.effects, String(count))
        expect(signal, String(count)).to.equal('SIGKILL')
        const { id: first } = said as { id: string }
        await using host = await openWorkflowHost({ ...files, serverId: 'next', dead: 'killed' })
        const workflows = host.service(Workflows)
        // before its first write, the event was not sent
        if (count === 0) await workflows.signal(first, { name: 'go', data: null }, ctx)
        const last = async () => {
          for (let run = await workflows.get(first, ctx); ; run = await workflows.get(run.nextRun, ctx))
            if (run.nextRun === undefined) return run
        }
        for (const end = Date.now() + 20_000; (await last()).status === 'running' && Date.now() < end; )
          await new Promise(resolve => setTimeout(resolve, 20))
        const { runs } = await workflows.runs({ limit: 10 }, ctx)
        expect([count, runs.length, ...runs.map(({ status }) => status)]).to.deep.equal([
          count,
          3,
          'completed',
          'completed',
          'completed',
        ])
        const [third, second, one] = runs
        expect([one!.id, one!.nextRun, second!.nextRun]).to.deep.equal([first, second!.id, third!.id])
        expect([third!.previousRun, third!.firstRun, second!.previousRun]).to.deep.equal([second!.id, first, first])
        expect([third!.input, third!.result]).to.deep.equal([{ n: 2 }, 'kept'])
        expect(effectsIn(files.effects).map(({ run, step }) => `${run} ${step}`)).to.have.members(
          [one!, second!, third!].map(({ id }) => `${id} one`).concat(`${third!.id} done`)
        )
      }
    })).timeout(240_000)

  it('lose no run that they pause or resume, at whatever write they are killed', () =>
    inNewHome(async home => {
      const boundaries = ['pause', 'resume'].flatMap(what => [0, 1, 2, 3, 4, 5].map(count => `${what}:${count}`))
      for (const boundary of boundaries) {
        const files = { db: `${home}/${boundary}.db`, effects: `${home}/${boundary}` }
        const { said, signal } = await ran('pause', files.db, files.effects, boundary)
        expect(signal, boundary).to.equal('SIGKILL')
        const { id } = said as { id: string }
        await using host = await openWorkflowHost({ ...files, serverId: 'next', dead: 'killed' })
        const workflows = host.service(Workflows)
        // one that was not paused is paused now, and one that was stays so
        const paused = await workflows.pause(id, ctx)
        expect([boundary, paused.status, typeof paused.pausedAt]).to.deep.equal([boundary, 'running', 'number'])
        await workflows.answer(id, { step: 'q', value: true }, ctx)
        expect((await workflows.settled(id, 300, ctx)).status).to.equal('running')
        await workflows.resume(id, ctx)
        expect((await workflows.settled(id, 10_000, ctx)).status, boundary).to.equal('completed')
        expect(effectsIn(files.effects).map(({ step }) => step)).to.deep.equal(['one', 'two'])
      }
    })).timeout(240_000)

  it('go on with a change of many runs after they were killed in the midst of it', () =>
    inNewHome(async home => {
      const [db, effects] = [`${home}/svc.db`, `${home}/effects`]
      const { said, signal } = await ran('bulk', db, effects, '300')
      expect(signal).to.equal('SIGKILL')
      const { job } = said as { job: string }
      await using host = await openWorkflowHost({ db, effects, serverId: 'next', dead: 'killed', more: ['jobs'] })
      const ended = await host.service(Jobs).settled(job, 60_000, ctx)
      expect([ended.state, ended.error]).to.deep.equal(['completed', undefined])
      const dry = { action: 'cancel', filter: { workflow: 'asked' }, dryRun: true } as const
      while ((await host.service(Workflows).bulk(dry, ctx)).count > 0) await new Promise(resolve => setTimeout(resolve, 50))
      const counted = { action: 'retry', filter: { errorCode: 'CANCELLED' }, dryRun: true } as const
      expect(await host.service(Workflows).bulk(counted, ctx)).to.deep.equal({ count: 500 })
    })).timeout(120_000)
})

import { readFile, writeFile } from 'node:fs/promises'
import { codeOf } from '@svc/core'
import { Selection, type WorkflowDefinition, Workflows } from '@svc/core/contracts'
import { service, testContext } from '@svc/testing'
import { expect } from 'chai'
import { inFolder, node, openEngine, ran, ctx, waitingRun } from './support.ts'

const failure = (running: Promise<unknown>) => running.then(() => undefined, codeOf)
/** What no id or time in a file contains by chance. */
const PART = 'Zx9qWv7k'
const PEM = `-----BEGIN KEY-----\nMIIB "quoted" \\ ${PART}\n-----END KEY-----`

describe('what a run keeps and obeys', () => {
  it('is no secret, also where it has several lines and stands in JSON', () =>
    inFolder(async folder => {
      const key = `SVC_TEST_${crypto.randomUUID().replaceAll('-', '')}`
      process.env[key] = PEM
      const db = `${folder}/svc.db`
      try {
        await using host = await openEngine({ db, config: { workflows: { secrets: { KEY: { env: key } } } } })
        const run = await ran(host, {
          name: 'hides',
          secrets: ['KEY'],
          nodes: {
            plain: { type: 'transform', value: '${{ secrets.KEY }}', next: 'json' },
            json: { type: 'transform', value: '${{ json({"key": secrets.KEY}) }}', next: 'twice' },
            twice: { type: 'transform', value: 'x ${{ json({"key": json({"key": secrets.KEY})}) }}' },
          },
        })
        expect(run.error).to.equal(undefined)
        expect(JSON.stringify([run, await host.service(Workflows).steps(run.id, ctx)])).not.to.contain(PART)
      } finally {
        delete process.env[key]
      }
      for (const file of [db, `${db}-wal`])
        expect((await readFile(file).catch(() => Buffer.from(''))).includes(PART)).to.equal(false)
    }))

  it('is the first answer: another one that comes when that was taken is refused', async () => {
    await using host = await openEngine()
    const workflows = host.service(Workflows)
    const asks: WorkflowDefinition = {
      name: 'asks',
      nodes: { ask: { type: 'human', kind: 'input', message: 'What?', next: 'rest' }, rest: { type: 'wait', event: 'never' } },
    }
    for (let times = 0; times < 15; times++) {
      const id = await waitingRun(host, asks)
      await workflows.answer(id, { step: 'ask', value: 'first' }, ctx)
      expect(await failure(workflows.answer(id, { step: 'ask', value: 'second' }, ctx))).to.equal('INVALID_VALUE')
      const answered = (await workflows.steps(id, ctx)).find(step => step.step === 'ask')
      expect(JSON.stringify(answered?.output ?? 'first')).to.contain('first')
      await workflows.cancel(id, ctx)
    }
  })

  it('is an answer or its time, whichever came first, and the caller who answers learns which', async () => {
    await using host = await openEngine()
    const workflows = host.service(Workflows)
    const asks: WorkflowDefinition = {
      name: 'asks',
      nodes: { ask: { type: 'human', kind: 'input', message: 'What?', for: '30ms', fallback: 'time' } },
    }
    const answered = async (_: unknown, at: number) => {
      const id = await waitingRun(host, asks)
      await new Promise(resolve => setTimeout(resolve, at * 2))
      const refused = await failure(workflows.answer(id, { step: 'ask', value: 'word' }, ctx))
      return { refused, result: (await workflows.settled(id, 30_000, ctx)).result }
    }
    const counts = { refused: undefined, result: { answer: 'word', timed_out: false } }
    const late = { refused: 'INVALID_VALUE', result: { answer: 'time', timed_out: true } }
    for (const item of await Promise.all(Array.from({ length: 30 }, answered)))
      expect(item).to.deep.equal(item.refused === undefined ? counts : late)
  })

  it('is the request that its key was used for first', async () => {
    await using host = await openEngine()
    const workflows = host.service(Workflows)
    const once: WorkflowDefinition = { name: 'once', nodes: { a: { type: 'transform', value: '${{ input }}' } } }
    const start = (n: number) => workflows.start({ workflow: once, input: { n }, idempotencyKey: 'k' }, ctx)
    expect((await start(1)).id).to.equal((await start(1)).id)
    expect(await failure(start(2))).to.equal('INVALID_VALUE')
  })

  it('is what its owner may do when it is tried again', async () => {
    const seen: (readonly string[])[] = []
    const fails = node(async function* (_task, { principal }) {
      seen.push(principal.scopes)
      yield { type: 'progress', message: 'it will fail' }
      throw new Error('not yet')
    })
    await using host = await openEngine({ nodes: { fails } })
    const workflows = host.service(Workflows)
    const as = (...scopes: string[]) => testContext({ principal: { id: 'ada', scopes } })
    const workflow: WorkflowDefinition = { name: 'fails', nodes: { a: { type: 'fails' } } }
    const { id } = await workflows.start({ workflow }, as('workflows', 'tools'))
    await workflows.settled(id, 5_000, as('workflows'))
    const again = await workflows.retry(id, {}, as('workflows'))
    await workflows.settled(again.id, 5_000, as('workflows'))
    expect(seen).to.deep.equal([['workflows', 'tools'], ['workflows']])
  })

  it('is a definition of TypeScript too, where workflows.code names it, and what is none is reported', () =>
    inFolder(async folder => {
      const typed =
        "interface N { readonly name: string }\nconst about: N = { name: 'typed' }\nexport default { ...about, nodes: { a: { type: 'transform', value: 7 } } }\n"
      await writeFile(`${folder}/typed.ts`, typed)
      await writeFile(`${folder}/broken.mjs`, 'export default {')
      await writeFile(`${folder}/none.js`, 'export const nothing = 1')
      await using host = await openEngine({ config: { workflows: { roots: [], code: [folder] } } })
      const workflows = host.service(Workflows)
      const listed = new Map((await workflows.list(ctx)).map(item => [item.source, item.problems?.[0]?.message ?? item.nodes]))
      expect(listed.get('typed.ts')).to.equal(1)
      expect(listed.get('broken.mjs')).to.match(/^cannot be imported: /)
      expect(listed.get('none.js')).to.equal('has no workflow as its default export')
      for (const workflow of ['typed', 'typed.ts']) {
        const { id } = await workflows.start({ workflow }, ctx)
        expect((await workflows.settled(id, 5_000, ctx)).result).to.equal(7)
      }
    }))

  it('is reported beforehand where it names a profile that is not there', async () => {
    const profiles = { profiles: [{ name: 'careful' }], active: 'careful', default: 'careful' }
    const unasked = () => Promise.reject(new Error('nobody asks for this'))
    const [mode, effective, select, switchProfile, switchModel, switchMode] = Array.from({ length: 6 }, () => unasked)
    const selection = {
      mode,
      effective,
      select,
      switchProfile,
      switchModel,
      switchMode,
      profiles: async () => profiles,
    } as Selection
    await using host = await openEngine({ give: [service(Selection, selection)] })
    const text = 'name: x\nnodes:\n  a: { type: agent, prompt: hello, profile: carefull }\n'
    const problems = await host.service(Workflows).validate({ text }, ctx)
    expect(problems.map(({ line, message, hint }) => [line, message, hint].join(' | ')).join()).to.match(
      /^3 \|.*carefull.*careful/
    )
  })
})

import { svcError } from '@svc/core'
import type { NodeStep, NodeTask, WorkflowNode } from '@svc/core/contracts'
import { type NodeSamples, nodeKit } from '@svc/testing'
import { expect } from 'chai'

const SETTINGS = {
  type: 'object',
  properties: { times: { type: 'integer', minimum: 1, description: 'How often' }, to: { type: 'string', description: 'Whom' } },
  required: ['times'],
  additionalProperties: false,
}
const sent: string[] = []

/** A node that does everything right: it runs its body so often, one after the other, and tells somebody. */
const honest: WorkflowNode = {
  description: 'Runs its body so many times.',
  settings: SETTINGS,
  output: { type: 'object', properties: { rounds: { type: 'integer' } }, required: ['rounds'] },
  branches: ['done'],
  body: 'do',
  repeatable: true,
  async *run({ settings: { times, to }, state, children, idempotencyKey }, { signal }) {
    const rounds = children ? (state as number) + 1 : 0
    if (to === 'nobody') throw svcError('NOBODY', 'there is nobody to tell')
    if (to === 'never') await new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    if (rounds < (times as number))
      yield { type: 'fork', join: 'all', children: [{ key: String(rounds), body: 'do' }], state: rounds }
    else {
      yield { type: 'spent', tool_calls: 1 }
      sent.push(idempotencyKey)
      yield { type: 'output', output: { rounds }, branch: 'done' }
    }
  },
}
const samples: NodeSamples = {
  good: [{ settings: { times: 2 } }],
  bad: [{ settings: {} }, { settings: { times: 1, to: 'nobody' }, code: 'NOBODY' }],
  slow: { settings: { times: 1, to: 'never' } },
  keyed: { settings: { times: 1 }, keys: () => sent },
  concurrent: 3,
}

/** The titles of the cases that fail. */
async function failures(open: () => WorkflowNode): Promise<string[]> {
  const failed: string[] = []
  for (const { title, run } of nodeKit(() => ({ node: open() }), samples))
    await run.call(undefined).catch(() => failed.push(title))
  return failed
}

type Run = WorkflowNode['run']
const says = (...words: NodeStep[]): { run: Run } => ({
  async *run() {
    yield* words
  },
})
/** Changes what the honest node says. */
const turned = (turn: (word: NodeStep) => NodeStep): { run: Run } => ({
  async *run(task, ctx) {
    for await (const word of honest.run(task, ctx)) yield turn(word)
  },
})
const without = <T extends object>(value: T, key: keyof T) =>
  Object.fromEntries(Object.entries(value).filter(([name]) => name !== key)) as T

const SAYS = 'describes itself in plain data'
const SETS = 'describes each setting, and redefines no common setting of nodes'
const TAKES = 'accepts the settings of the good samples, and rejects the bad ones and unknown keys'
const ANSWERS = 'yields one declared output for each good sample, and does not change its task'
const ANEW = 'continues in another process with only the data of its task'
const AGAIN = 'can run again after its process has ended, or declares that it cannot'
const FAILS = 'fails with a code and a readable message'
const ENDS = 'yields an output or fails with a code when children fail, are cancelled, or the time limit ends'
const ABORTS = 'ends when it is aborted while it runs'
const KEYS = 'hands on the same idempotency key on each try, and another for other work'

describe('nodeKit', () => {
  it('passes a node that keeps the contract', async () => expect(await failures(() => honest)).to.deep.equal([]))

  it('passes one whose branches are as its settings say', async () => {
    const rules = [{ having: { to: 'all' }, branches: ['all'] }, { optional: ['done'] }]
    expect(await failures(() => ({ ...honest, branches: 'any', answers: rules }))).to.deep.equal([])
  })

  const done = { type: 'output', output: { rounds: 2 }, branch: 'done' } as const
  const cheats: Record<string, [Partial<WorkflowNode>, ...string[]]> = {
    'does not say what it does': [{ description: 'x' }, SAYS],
    'is no plain data': [{ output: { type: 'object', check: () => true } }, SAYS],
    'has a setting of a name that every node has': [
      { settings: { ...SETTINGS, properties: { ...SETTINGS.properties, timeout: { description: 'Its own' } } } },
      SETS,
    ],
    'says nothing of a setting': [
      { settings: { ...SETTINGS, properties: { ...SETTINGS.properties, to: { type: 'string' } } } },
      SETS,
    ],
    'names a setting that it does not have': [{ names: { team: 'team' } }, SETS],
    'is called with what it does not have': [{ calledWith: { input: 'team' } }, SETS],
    'takes keys that it does not know': [{ settings: without(SETTINGS, 'additionalProperties') }, TAKES],
    'takes what is to be refused': [{ settings: without(SETTINGS, 'required') }, TAKES],
    'goes on after its last word': [says(done, done), ANSWERS],
    'has no last word': [says({ type: 'progress', message: 'half' }), ANSWERS],
    'answers a branch that it has not declared': [
      turned(word => (word.type === 'output' ? { ...word, branch: 'other' } : word)),
      ANSWERS,
    ],
    'answers a branch that its settings do not give it': [{ branches: 'any', answers: [{ branches: ['other'] }] }, ANSWERS],
    'says twice which branches it answers': [{ answers: [{ branches: ['done'] }] }, SAYS],
    'answers no branch': [turned(word => (word.type === 'output' ? { type: 'output', output: word.output } : word)), ANSWERS],
    'answers what breaks its schema': [
      turned(word => (word.type === 'output' ? { ...word, output: { rounds: 'two' } } : word)),
      ANSWERS,
    ],
    'answers what is not plain': [
      turned(word => (word.type === 'output' ? { ...word, output: new Map() as never } : word)),
      ANSWERS,
    ],
    'tells more than the whole': [says({ type: 'progress', fraction: 2 }, done), ANSWERS],
    'spends half a tool call': [says({ type: 'spent', tool_calls: 0.5 }, done), ANSWERS],
    'begins two children of one key': [
      turned(word => (word.type === 'fork' ? { ...word, children: [...word.children, ...word.children] } : word)),
      ANSWERS,
    ],
    'begins a body that it does not have': [
      turned(word => (word.type === 'fork' ? { ...word, children: [{ key: 'a', body: 'else' }] } : word)),
      ANSWERS,
    ],
    'never comes to an end': [turned(word => (word.type === 'output' ? { type: 'wait', until: 0 } : word)), ANSWERS],
    'may not be repeated and says so in other words': [
      {
        repeatable: 'itself',
        async *run(task, ctx) {
          if (task.interrupted) throw svcError('OTHER', 'not again')
          yield* honest.run(task, ctx)
        },
      },
      AGAIN,
    ],
    'is never repeated though it says it may be': [
      {
        async *run(task, ctx) {
          if (task.interrupted) throw svcError('NODE_INTERRUPTED', 'not again')
          yield* honest.run(task, ctx)
        },
      },
      AGAIN,
    ],
    'fails without a code': [
      {
        async *run(task, ctx) {
          if (task.settings.to === 'nobody') throw new Error('no code')
          yield* honest.run(task, ctx)
        },
      },
      FAILS,
    ],
    'breaks when a child has failed': [
      {
        async *run(task, ctx) {
          const [child] = Object.values(task.children ?? {})
          if (child && !('output' in child)) throw new TypeError('undefined is no object')
          yield* honest.run(task, ctx)
        },
      },
      ENDS,
    ],
    'does not heed an abort': [
      {
        async *run(task, ctx) {
          if (task.settings.to === 'never') yield done
          else yield* honest.run(task, ctx)
        },
      },
      ABORTS,
    ],
    'has another key on each try': [
      {
        run: (task: NodeTask, ctx) => honest.run({ ...task, idempotencyKey: `${task.idempotencyKey}:${task.attempt}` }, ctx),
      },
      KEYS,
    ],
    'has one key for all work': [{ run: (task: NodeTask, ctx) => honest.run({ ...task, idempotencyKey: 'one' }, ctx) }, KEYS],
    'changes its task': [
      {
        async *run(task, ctx) {
          Reflect.set(task.settings, 'times', 1)
          Object.assign(task.settings, { times: 2 })
          yield* honest.run(task, ctx)
        },
      },
      ANSWERS,
    ],
  }
  for (const [what, [cheat, ...expected]] of Object.entries(cheats))
    it(`catches a node that ${what}`, async () =>
      expect(await failures(() => ({ ...honest, ...cheat }))).to.include.members(expected))

  it('catches a node that remembers where it was instead of reading its state', async () => {
    const open = (): WorkflowNode => {
      let rounds = 0
      return {
        ...honest,
        async *run({ settings, children, idempotencyKey }) {
          if (!children) rounds = 0
          if (settings.to === 'nobody') throw svcError('NOBODY', 'there is nobody to tell')
          if (rounds === settings.times) {
            sent.push(idempotencyKey)
            yield { type: 'output', output: { rounds }, branch: 'done' }
          } else yield { type: 'fork', join: 'all', children: [{ key: String(rounds++), body: 'do' }] }
        },
      }
    }
    expect(await failures(open)).to.include(ANEW)
  })

  it('takes values that differ from run to run where the samples name them', async () => {
    let now = 0
    const timed: WorkflowNode = {
      ...without(honest, 'output'),
      async *run(task, ctx) {
        const { rounds } = Object(task.state) as { rounds?: number }
        const inner = turned(step => {
          if (step.type === 'fork') return { ...step, state: { rounds: step.state ?? null, times: [{ at: ++now }] } }
          return step.type === 'output' ? { ...step, output: { at: ++now, rounds: 2 } } : step
        })
        yield* inner.run({ ...task, ...(rounds === undefined ? {} : { state: rounds }) }, ctx)
      },
    }
    const titles = async (unstable: readonly string[]) => {
      const failed: string[] = []
      for (const { title, run } of nodeKit(() => ({ node: timed }), { ...samples, unstable }))
        await run.call(undefined).catch(() => failed.push(title))
      return failed
    }
    expect(await titles([])).to.deep.equal([ANEW])
    expect(await titles(['output.at'])).to.deep.equal([ANEW])
    expect(await titles(['output.at', 'state.times.*.at'])).to.deep.equal([])
  })
})

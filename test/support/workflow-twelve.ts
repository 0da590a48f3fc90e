import type { WorkflowDefinition } from '@svc/core/contracts'

const effect = (value: unknown, more: object = {}) => ({ type: 'effect', value, ...more })

/** Two effects, one after the other. */
export const INNER: WorkflowDefinition = {
  name: 'inner',
  inputs: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] },
  nodes: { first: effect('${{ input.n }}', { next: 'second' }), second: effect('${{ nodes.first + 1 }}') },
}

/** Twelve nodes: branches, things at once, a list, a person, another workflow, a retry, a loop, a failure that is caught, a wait. */
export const TWELVE: WorkflowDefinition = {
  name: 'twelve',
  nodes: {
    one: effect(1, { next: 'way' }),
    way: { type: 'condition', if: 'nodes.one == 1', branches: { true: 'both', false: 'never' } },
    never: effect('never', { next: 'both' }),
    both: {
      type: 'parallel',
      bodies: { left: effect('l'), right: { nodes: { up: effect('u', { next: 'down' }), down: effect('d') } } },
      next: 'each',
    },
    each: { type: 'map', over: 'input.list', width: 2, do: effect('${{ item * 2 }}'), next: 'asked' },
    asked: { type: 'human', message: 'May I?', branches: { approved: 'within', rejected: 'end' } },
    within: { type: 'subworkflow', workflow: 'inner', input: { n: 5 }, next: 'again' },
    again: effect('again', { fail_times: 1, retry: { attempts: 3, delay: '1ms' }, next: 'rounds' }),
    rounds: { type: 'loop', until: 'last >= 1', do: effect('${{ index }}'), next: 'fails' },
    fails: effect('never', { fails: true, catch: 'saved' }),
    saved: effect('${{ error.code }}', { next: 'pause' }),
    pause: { type: 'wait', for: '5ms', next: 'last' },
    last: effect('last'),
  },
  result: {
    both: '${{ nodes.both }}',
    each: '${{ nodes.each }}',
    within: '${{ nodes.within }}',
    rounds: '${{ nodes.rounds.rounds }}',
    saved: '${{ nodes.saved }}',
  },
}

export const TWELVE_RESULT = { both: { left: 'l', right: 'd' }, each: [2, 4, 6], within: 6, rounds: 2, saved: 'EFFECT_FAILED' }

/** Does things, also in a list, fails, and undoes them: one by two effects, of which the first needs two tries. */
export const UNDOES: WorkflowDefinition = {
  name: 'undoes',
  nodes: {
    one: effect(1, {
      compensate: {
        nodes: { back: effect('b', { fail_times: 1, retry: { attempts: 2, delay: '1ms' }, next: 'off' }), off: effect('o') },
      },
      next: 'each',
    }),
    each: {
      type: 'map',
      over: '[1, 2]',
      width: 1,
      do: effect('${{ item }}', { compensate: effect('${{ output }}') }),
      next: 'bad',
    },
    bad: effect('never', { fails: true }),
  },
}

/** Its effects, in their order. */
export const UNDOES_EFFECTS = [
  'one',
  'each/0/do',
  'each/1/do',
  'undo/each/1/do/do',
  'undo/each/0/do/do',
  'undo/one/back',
  'undo/one/off',
]

/** The steps that have an effect. */
export const TWELVE_EFFECTS = [
  'one',
  'both/left/do',
  'both/right/up',
  'both/right/down',
  'each/0/do',
  'each/1/do',
  'each/2/do',
  'within/run/first',
  'within/run/second',
  'again',
  'rounds/0/do',
  'rounds/1/do',
  'saved',
  'last',
]

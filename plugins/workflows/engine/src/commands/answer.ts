import { lineInvalid } from '@svc/plugin-kit'
import type { Json, Question, Waiting } from '@svc/core/contracts'
import { Args, JSON_FLAG, SvcCommand } from '@svc/cli/command'
import { asksNothing, invalid } from '../errors.ts'
import { follow } from './follow.ts'
import { openRuns, contextOf } from './ground.ts'
import { FOLLOW_FLAG, RUN_ARG } from './line.ts'
import { answerOf } from './values.ts'

/** `svc workflows answer <run> [<step>] <answer>`: the step may be left out where only one asks. `--follow` stays to the end of the run. */
export class WorkflowsAnswer extends SvcCommand {
  static override summary = 'Answer what a run asks'
  static override description =
    'The step may be left out where only one asks. The answer to an approval is yes or no (y, true, approved; n, false, rejected), to a choice one of them or its number, else text or JSON.'
  static override usage = '<%= command.id %> <run> [<step>] <answer> [--follow] [--json]'
  static override examples = [
    '<%= config.bin %> <%= command.id %> 4f0c yes',
    '<%= config.bin %> <%= command.id %> 4f0c review yes --follow',
  ]
  static override args = {
    ...RUN_ARG,
    step: Args.string({ description: 'Step that asks, or the answer', required: true, ignoreStdin: true }),
    answer: Args.string({ description: 'The answer', ignoreStdin: true }),
  }
  static override flags = { ...FOLLOW_FLAG, ...JSON_FLAG }

  async run(): Promise<number | void> {
    const { args, flags } = await this.parse(WorkflowsAnswer)
    const id = args.run
    const ctx = contextOf(this, 'answer')
    const workflows = await openRuns(this, ctx)
    const { waiting, status } = await workflows.get(id, ctx)
    const asking = waiting.filter(one => one.ask)
    if (asking.length === 0) throw asksNothing(id, status)
    const step = args.answer === undefined ? onlyOne(asking) : args.step
    const typed = args.answer ?? args.step
    const { ask } = asking.find(one => one.step === step) ?? {}
    // the engine says what is no question any more
    await workflows.answer(id, { step, value: ask ? valueOf(ask, typed) : typed }, ctx)
    if (flags.follow) return follow(this, workflows, id, flags)
    if (flags.json) this.print(JSON.stringify({ success: true }))
    else this.note(`answered; a server of this home goes on with it, or svc workflows status ${id} --follow`)
  }
}

function onlyOne(asking: readonly Waiting[]): string {
  if (asking.length === 1) return asking[0]!.step
  throw lineInvalid(
    `several ask: ${asking.map(one => one.step).join(', ')}`,
    'workflows answer <run> [<step>] <answer> [--follow] [--json]'
  )
}

/** What is no answer is handed on as it is typed: the engine says what would be one. */
function valueOf(ask: Question, typed: string): Json {
  const value = answerOf(ask, typed)
  if (value === undefined && ask.kind === 'input') throw invalid('value', 'must not be empty')
  return value ?? typed
}

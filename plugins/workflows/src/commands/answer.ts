import { JSON_FLAG, lineInvalid, readLine } from '@svc/command-line'
import type { Command, Json, Question, Waiting } from '@svc/core/contracts'
import { asksNothing, invalid } from '../errors.ts'
import { follow } from './follow.ts'
import { openRuns, useOf } from './ground.ts'
import { FOLLOW_FLAG, USAGE } from './line.ts'
import { answerOf } from './values.ts'

/** `svc workflows answer <run> [<step>] <answer>`: the step may be left out where only one asks. `--follow` stays to the end of the run. */
const answer: Command = async call => {
  const { values, positionals } = readLine(call.args, USAGE.answer, { ...FOLLOW_FLAG, ...JSON_FLAG }, [2, 3])
  const [id = ''] = positionals
  const use = useOf(call, 'answer')
  const workflows = await openRuns(call, use)
  const { waiting, status } = await workflows.get(id, use)
  const asking = waiting.filter(one => one.ask)
  if (asking.length === 0) throw asksNothing(id, status)
  const step = positionals.length === 3 ? positionals[1]! : onlyOne(asking)
  const typed = positionals.at(-1)!
  const { ask } = asking.find(one => one.step === step) ?? {}
  // what is no question any more is told by the engine
  await workflows.answer(id, { step, value: ask ? valueOf(ask, typed) : typed }, use)
  if (values.follow) return follow(call, workflows, id, values)
  if (values.json) call.print(JSON.stringify({ success: true }))
  else call.note(`answered; a server of this home goes on with it, or svc workflows status ${id} --follow`)
}

export default answer

function onlyOne(asking: readonly Waiting[]): string {
  if (asking.length === 1) return asking[0]!.step
  throw lineInvalid(`several ask: ${asking.map(one => one.step).join(', ')}`, USAGE.answer)
}

/** What is no answer is handed on as it is typed: the engine says what would be one. */
function valueOf(ask: Question, typed: string): Json {
  const value = answerOf(ask, typed)
  if (value === undefined && ask.kind === 'input') throw invalid('value', 'must not be empty')
  return value ?? typed
}

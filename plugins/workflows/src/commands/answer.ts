import { JSON_FLAG, lineInvalid, readLine } from '@svc/command-line'
import type { Command, Question, Waiting } from '@svc/core/contracts'
import { follow } from './follow.ts'
import { openRuns, useOf } from './ground.ts'
import { FOLLOW_FLAG, USAGE } from './line.ts'
import { answerOf, answersTo } from './values.ts'

/** `svc workflows answer <run> [<step>] <answer>`: the step may be left out where only one asks. `--follow` stays to the end of the run. */
const answer: Command = async call => {
  const { values, positionals } = readLine(call.args, USAGE.answer, { ...FOLLOW_FLAG, ...JSON_FLAG }, [2, 3])
  const [id = ''] = positionals
  const use = useOf(call, 'answer')
  const workflows = await openRuns(call, use)
  const { waiting } = await workflows.get(id, use)
  const step = positionals.length === 3 ? positionals[1]! : onlyOne(waiting)
  const typed = positionals.at(-1)!
  const { ask } = waiting.find(one => one.step === step) ?? {}
  // what is no question any more is told by the engine
  await workflows.answer(id, { step, value: ask ? valueOf(ask, typed) : typed }, use)
  if (values.follow) return follow(call, workflows, id, values)
  if (values.json) call.print(JSON.stringify({ success: true }))
  else call.note(`answered; a server of this home goes on with it, or svc workflows status ${id} --follow`)
}

export default answer

function onlyOne(waiting: readonly Waiting[]): string {
  const asking = waiting.filter(one => one.ask)
  if (asking.length === 1) return asking[0]!.step
  throw lineInvalid(
    asking.length === 0 ? 'the run asks nothing' : `several ask: ${asking.map(one => one.step).join(', ')}`,
    USAGE.answer
  )
}

function valueOf(ask: Question, typed: string) {
  const value = answerOf(ask, typed)
  if (value === undefined) throw lineInvalid(`"${typed}" is no answer: ${answersTo(ask)}`, USAGE.answer)
  return value
}

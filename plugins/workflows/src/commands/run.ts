import { JSON_FLAG, readLine } from '@svc/command-line'
import type { Command } from '@svc/core/contracts'
import { howOf, tellBegun } from './begun.ts'
import { openRuns, openWorkflows, useOf } from './ground.ts'
import { DETACH_FLAG, USAGE } from './line.ts'
import { inputOf, parametersOf } from './values.ts'

const OPTIONS = {
  input: { type: 'string' },
  param: { type: 'string', multiple: true },
  ...DETACH_FLAG,
  ...JSON_FLAG,
} as const

/** `svc workflows run <name>`: runs it here and shows how it goes; `--detach` leaves it to a server of this home. */
const run: Command = async call => {
  const { values, positionals } = readLine(call.args, USAGE.run, OPTIONS, [1, 1])
  const [workflow = ''] = positionals
  const input = await inputOf(values.input)
  const use = useOf(call, 'run')
  const workflows = await (values.detach ? openRuns(call, use) : openWorkflows(call))
  const { definition } = await workflows.show(workflow, use)
  const parameters = parametersOf(values.param ?? [], definition)
  const begun = await workflows.start({ workflow, input, parameters, ...howOf(values) }, use)
  return tellBegun(call, workflows, begun, values)
}

export default run

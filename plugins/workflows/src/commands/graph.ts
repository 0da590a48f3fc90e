import { lineInvalid, readLine } from '@svc/command-line'
import { writeFile } from 'node:fs/promises'
import { messageOf } from '@svc/core'
import type { Command } from '@svc/core/contracts'
import { openWorkflows, useOf } from './ground.ts'
import { counted, USAGE } from './line.ts'

const OPTIONS = { svg: { type: 'string' } } as const

/** `svc workflows graph <name>`: on the terminal, or as SVG into a file. */
const graph: Command = async call => {
  const { values, positionals } = readLine(call.args, USAGE.graph, OPTIONS, [1, 1])
  const [workflow = ''] = positionals
  const { definition, info } = await (await openWorkflows(call)).show(workflow, useOf(call, 'graph'))
  const faults = info.problems?.length ?? 0
  if (faults > 0) call.note(`the definition has ${counted(faults, 'fault')}: svc workflows validate ${workflow}`)
  const { drawSvg, drawTerminal } = await import('@svc/workflow')
  if (values.svg === undefined || values.svg === '-')
    return call.print(values.svg ? drawSvg(definition) : drawTerminal(definition))
  await writeFile(values.svg, drawSvg(definition)).catch((error: unknown) => {
    throw lineInvalid(`--svg cannot be written: ${messageOf(error)}`, USAGE.graph)
  })
  call.note(`drawn to ${values.svg}`)
}

export default graph

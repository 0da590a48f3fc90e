import { lineInvalid, readLine } from '@svc/command-line'
import { writeFile } from 'node:fs/promises'
import { messageOf } from '@svc/core'
import type { Command } from '@svc/core/contracts'
import { openWorkflows, useOf } from './ground.ts'
import { USAGE } from './line.ts'

const OPTIONS = { svg: { type: 'string' } } as const

/** `svc workflows graph <name>`: on the terminal, or as SVG into a file. */
const graph: Command = async call => {
  const { values, positionals } = readLine(call.args, USAGE.graph, OPTIONS, [1, 1])
  const { definition } = await (await openWorkflows(call)).show(positionals[0] ?? '', useOf(call, 'graph'))
  const { drawSvg, drawTerminal } = await import('@svc/workflow')
  if (values.svg === undefined || values.svg === '-')
    return call.print(values.svg ? drawSvg(definition) : drawTerminal(definition))
  await writeFile(values.svg, drawSvg(definition)).catch((error: unknown) => {
    throw lineInvalid(`--svg cannot be written: ${messageOf(error)}`, USAGE.graph)
  })
  call.note(`drawn to ${values.svg}`)
}

export default graph

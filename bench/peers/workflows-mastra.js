import { Mastra } from '@mastra/core/mastra'
import { createStep, createWorkflow } from '@mastra/core/workflows'
import { LibSQLStore } from '@mastra/libsql'
import { z } from 'zod'
import { serveRuns, STEPS, work } from './workflow-runs.js'

const [file] = process.argv.slice(2)
const any = z.any()
const steps = STEPS.map(i => createStep({ id: `n${i}`, inputSchema: any, outputSchema: any, execute: () => work(i) }))
const made = id => createWorkflow({ id, inputSchema: any, outputSchema: any })
const sequence = steps.reduce((flow, step) => flow.then(step), made('sequence')).commit()
const parallel = made('parallel').parallel(steps).commit()
const storage = file && { storage: new LibSQLStore({ id: 'bench', url: `file:${file}` }) }
const mastra = new Mastra({ logger: false, workflows: { sequence, parallel }, ...storage })

async function run(name) {
  const one = await mastra.getWorkflow(name).createRun()
  const { status, result } = await one.start({ inputData: {} })
  if (status !== 'success') throw new Error(status)
  return result
}

serveRuns({ sequence: () => run('sequence'), parallel: async () => (await run('parallel')).n9 })

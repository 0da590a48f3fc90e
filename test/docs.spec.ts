import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { committedReference, configReference } from '../scripts/config-reference.ts'
import { committedTools, toolsReference } from '../scripts/tools-reference.ts'
import { committedWorkflowPage, workflowPage } from '../scripts/workflow-reference.ts'

describe('the documents', () => {
  it('have a configuration reference that is what the schemas say (npm run docs writes it)', async () => {
    expect(await committedReference()).to.equal(await configReference())
  })

  it('have a reference of the tools that is what the tools say (npm run docs writes it)', async () => {
    expect(await committedTools()).to.equal(await toolsReference())
  })

  it('have a reference of workflows that is what their nodes say (npm run docs writes it)', async () => {
    expect(await committedWorkflowPage()).to.equal(await workflowPage())
  })

  it('have notices of what others wrote that are what the lock says (npm run notices writes them)', async () => {
    const script = fileURLToPath(new URL('../scripts/notices.mjs', import.meta.url))
    const { stderr } = await promisify(execFile)(process.execPath, [script, '--check'])
    expect(stderr).to.equal('')
  })
})

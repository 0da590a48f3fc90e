import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { withSandbox } from './support/sandbox.ts'
import { lacking, skipBecause } from '../../../../test/support/needs.ts'

const FILE = fileURLToPath(new URL('support/unprivileged.ts', import.meta.url))
const NOBODY = ['--reuid=65534', '--regid=65534', '--clear-groups']

withSandbox('the process sandbox of somebody who may make no control group', () => {
  it('holds memory and processes by the limits of each process, with room for Node', async function () {
    skipBecause(this, lacking('root'))
    const env = { PATH: '/usr/bin:/bin', TMPDIR: '/tmp' }
    const { stdout } = await promisify(execFile)('setpriv', [...NOBODY, process.execPath, '--conditions=svc-source', FILE], {
      env,
    })
    const { processes, ...held } = JSON.parse(stdout) as { processes: number }
    expect(held).to.deep.equal({
      memory: 'rlimit',
      pids: 'rlimit',
      greedy: false,
      modest: true,
      greedyNode: false,
      modestNode: true,
    })
    expect(processes).to.be.within(1, 30)
  })
})

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { runSvc } from './support/command.ts'
import { startService } from './support/service.ts'

const PUBLISH = 'name: publish\nnodes:\n  done: { type: transform, value: 1 }\n'

describe('a workflow file whose name differs from the name of its workflow', () => {
  let folder: string
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-workflow-files-'))
    await mkdir(join(folder, 'workflows'))
    await writeFile(join(folder, 'workflows', 'release.yaml'), PUBLISH)
  })
  after(() => rm(folder, { recursive: true, force: true }))

  it('is a warning in the log at the start, and when it appears while the server runs', async () => {
    await using service = await startService({ cwd: folder })
    await service.seen(/the workflow file release\.yaml has problems/)
    await writeFile(join(folder, 'workflows', 'other.yaml'), PUBLISH)
    await service.seen(/the workflow file other\.yaml has problems/)
    const lines = service
      .output()
      .split('\n')
      .filter(line => line.includes('the workflow file'))
      .map(line => JSON.parse(line) as { file: string; problems: string[] })
    expect(lines.map(({ file }) => file)).to.deep.equal(['release.yaml', 'other.yaml'])
    expect(lines[0]!.problems[0]).to.equal(
      'line 1, name: must be "release", the name of its file. Rename the workflow, or the file to publish.yaml'
    )
  }).timeout(30_000)

  it('is named by the error about the name that does not exist', async () => {
    const { code, err } = await runSvc(['workflows', 'run', 'publish'], { home: join(folder, 'home'), cwd: folder })
    expect(code).to.not.equal(0)
    expect(err)
      .to.contain('WORKFLOW_UNKNOWN')
      .and.match(/The definition in (release|other)\.yaml has this name/)
  })
})

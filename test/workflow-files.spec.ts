import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { setTimeout as wait } from 'node:timers/promises'
import { runSvc } from './support/command.ts'
import { startService } from './support/service.ts'
import { workersOf } from './support/two-workers.ts'

/** Longer than the time between two looks at the files. */
const LOOKS_MS = 6_000
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

  it('is logged once by a server of several workers, and by another when that one dies or the server reloads', async () => {
    await using service = await startService({ cwd: folder, args: ['--workers', '3'] })
    const names = ['release.yaml', 'third.yaml', 'fourth.yaml']
    const filesIn = () =>
      service
        .output()
        .split('\n')
        .filter(line => line.includes('the workflow file'))
        .map(line => JSON.parse(line) as { file: string; pid?: number })
    const countOf = (name: string) => filesIn().filter(({ file }) => file === name).length
    await service.seen(/"event":"worker_ready"/, 2)
    await writeFile(join(folder, 'workflows', names[1]!), PUBLISH)
    await service.seen(/the workflow file third\.yaml has problems/)
    await wait(LOOKS_MS)
    expect(names.slice(0, 2).map(countOf)).to.deep.equal([1, 1])
    for (const pid of await workersOf(service.home)) process.kill(pid, 'SIGKILL')
    await service.seen(/"event":"worker_ready"/, 5)
    await writeFile(join(folder, 'workflows', names[2]!), PUBLISH)
    await service.seen(/the workflow file fourth\.yaml has problems/)
    expect((await runSvc(['reload'], { home: service.home })).code).to.equal(0)
    await service.seen(/the workflow file fourth\.yaml has problems/, 2)
    await wait(LOOKS_MS)
    expect(countOf(names[2]!), 'once for each set of workers').to.equal(2)
  }).timeout(90_000)

  it('is named by the error about the name that does not exist', async () => {
    const { code, err } = await runSvc(['workflows', 'run', 'publish'], { home: join(folder, 'home'), cwd: folder })
    expect(code).to.not.equal(0)
    expect(err)
      .to.contain('WORKFLOW_UNKNOWN')
      .and.match(/The definition in \w+\.yaml has this name/)
  })
})

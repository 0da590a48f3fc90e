// Not a unit test: the compiler is a process.
import { equal } from 'node:assert/strict'
import { apiReports, committedReport } from '../scripts/api-report.ts'

describe('the API of @svc/core', () => {
  it('is what docs/reference/api says: a change of it is deliberate, and listed in docs/explanation/plugin-versions.md (npm run api writes it)', async () => {
    for (const [file, text] of await apiReports()) equal(await committedReport(file), text, `${file} is old: npm run api`)
  }).timeout(60_000)
})

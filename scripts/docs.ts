// Writes the generated pages in docs/reference: `npm run docs`. `npm run api` writes the API reports.
import { writeFile } from 'node:fs/promises'
import { commandReference } from './command-reference.ts'
import { configReference } from './config-reference.ts'
import { contractPage } from './contract-reference.ts'
import { httpReference } from './http-reference.ts'
import { packagesReference } from './packages-reference.ts'
import { toolsReference } from './tools-reference.ts'
import { workflowPage } from './workflow-reference.ts'

/** File in docs/reference → its content. */
export const REFERENCE: Readonly<Record<string, () => Promise<string>>> = {
  'commands.md': commandReference,
  'configuration.md': configReference,
  'contracts.md': contractPage,
  'http.md': httpReference,
  'nodes.md': workflowPage,
  'packages.md': packagesReference,
  'tools.md': toolsReference,
}

if (import.meta.main)
  for (const [file, page] of Object.entries(REFERENCE))
    await writeFile(new URL(`../docs/reference/${file}`, import.meta.url), await page())

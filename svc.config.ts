// The build that `npm start` runs. It is the curated one: its plugins are loaded without being named (cli/src/curated.ts),
// and every key has its default (docs/configuration.md). `svc config show` prints what is in force and where it comes from.
import { defineConfig } from '@svc/cli'

export default defineConfig({
  // Add a plugin by its package or path, take one out with enabled: false:
  // plugins: ['./plugins/my-plugin', { use: '@svc/plugin-tools-files', enabled: false }],
  providers: { local: {} },
})

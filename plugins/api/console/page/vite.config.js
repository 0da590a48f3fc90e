import { defaultClientConditions, defineConfig } from 'vite'

export default defineConfig({
  base: '/console/',
  // `svc-source`: in the repository, the client is read from its sources
  resolve: { conditions: [...defaultClientConditions, 'svc-source'] },
  oxc: { jsx: { runtime: 'automatic' } },
  build: {
    assetsDir: 'files',
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    emptyOutDir: true,
    modulePreload: { polyfill: false },
    target: 'es2024',
    reportCompressedSize: false,
  },
  server: { proxy: { '/api': 'http://127.0.0.1:8000', '/health': 'http://127.0.0.1:8000' } },
})

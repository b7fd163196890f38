// Numbers as text, as the pages find it: server/pages/pages.ts serves it under this name.
export * from '../../../protocol/figure.js'
